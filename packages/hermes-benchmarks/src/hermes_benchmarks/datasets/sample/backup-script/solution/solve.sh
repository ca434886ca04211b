#!/bin/bash
set -eu
cat > backup.sh <<'SH'
#!/bin/bash
# Make a dated backup of a folder and delete the oldest: backup.sh SOURCE TARGET [KEEP]
set -euo pipefail
export LC_ALL=C
shopt -s nullglob

usage() {
    echo "usage: backup.sh SOURCE TARGET [KEEP]: $1" >&2
    exit 2
}

[[ $# -eq 2 || $# -eq 3 ]] || usage "two or three arguments are needed"
[[ -d $1 ]] || usage "no folder $1"
[[ ${3-3} =~ ^0*[1-9][0-9]*$ ]] || usage "no whole number from 1: $3"
keep=$((10#${3-3}))
source=$(cd -- "$1" && pwd)
name=${source##*/}
stamp=${BACKUP_STAMP:-$(date -u +%Y%m%dT%H%M%SZ)}
target=$2
[[ $target == / ]] || target=${target%/}
[[ $target == -* ]] && folder=./$target || folder=$target
mkdir -p -- "$folder" || exit 1
new=$folder/$name-$stamp.tar.gz
if [[ -e $new || -L $new ]]; then
    echo "backup.sh: $new is there already" >&2
    exit 1
fi
partial=$(mktemp "$folder/.backup.XXXXXX")
trap 'rm -f -- "$partial"' EXIT
tar -czf "$partial" -C "${source%/*}/" -- "./$name" || exit 1
ln -T -- "$partial" "$new" || exit 1

old=()
for file in "$folder/"*.tar.gz; do
    rest=${file#"$folder/"}
    [[ $rest == "$name-"* ]] || continue
    rest=${rest#"$name-"}
    [[ ${rest%.tar.gz} =~ ^[0-9]{8}T[0-9]{6}Z$ ]] && old+=("$file")
done
for ((index = 0; index < ${#old[@]} - keep; index++)); do
    rm -f -- "${old[index]}"
done
printf '%s\n' "$target/$name-$stamp.tar.gz"
SH
