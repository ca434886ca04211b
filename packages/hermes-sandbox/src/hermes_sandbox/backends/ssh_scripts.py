"""The shell code that keeps sandboxes on an SSH host. POSIX sh, as little of it as will do."""

CREATE = """
umask 077
set -eu
base=%(base)s
[ -n "$base" ] || base=${TMPDIR:-/tmp}/hermes-ssh-$(id -u)
mkdir -p "$base"
base=$(cd "$base" && pwd -P)
[ -O "$base" ] || { echo "$base belongs to somebody else" >&2; exit 3; }
chmod 711 "$base"
cd "$base"
printf %%s %(record)s >%(id)s.tmp
mv %(id)s.tmp %(id)s.json
mkdir %(id)s %(id)s/root %(id)s/tmp
chmod 755 %(id)s %(id)s/root
chmod 1777 %(id)s/tmp
(umask 022 && mkdir -p -- "$base/%(id)s/root"%(workdir)s) || exit 6
command -v tar >/dev/null || { echo "there is no tar" >&2; exit 4; }
command -v bash >/dev/null || { echo "there is no bash" >&2; exit 4; }
printf '%%s\\0' "$base" "$(command -v bash)" "$(id -un)"
"""

FIND = """
base=%(base)s
[ -n "$base" ] || base=${TMPDIR:-/tmp}/hermes-ssh-$(id -u)
cd "$base" 2>/dev/null && [ -d %(id)s ] || exit 9
printf '%%s\\0' "$(pwd -P)" "$(command -v bash)" "$(id -un)" "$(cat %(id)s.json)"
"""

LIST = """
base=%(base)s
[ -n "$base" ] || base=${TMPDIR:-/tmp}/hermes-ssh-$(id -u)
cd "$base" 2>/dev/null || exit 0
find . -maxdepth 1 -name '*.tmp' -mmin +60 -exec rm -f {} + 2>/dev/null
for file in *.json; do
  [ ! -f "$file" ] || { printf '%%s\\0' "${file%%.json}"; cat "$file"; printf '\\0'; }
done
"""

DELETE = """
base=%(base)s
[ -n "$base" ] || base=${TMPDIR:-/tmp}/hermes-ssh-$(id -u)
cd "$base" 2>/dev/null || exit 0
[ -e %(id)s.json ] || [ -e %(id)s ] || exit 0
mv %(id)s/root %(id)s/removed 2>/dev/null
round=0
while [ "$round" -lt 20 ]; do
  found=$(grep -ls -- '%(variable)s=%(id)s' /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for file in $found; do pid=${file#/proc/}; kill -9 "${pid%%%%/*}" 2>/dev/null; done
  round=$((round + 1))
done
rm -rf %(id)s 2>/dev/null || { chmod -R u+rwX %(id)s; rm -rf %(id)s; } || exit 5
rm -f %(id)s.json %(id)s.tmp
"""
