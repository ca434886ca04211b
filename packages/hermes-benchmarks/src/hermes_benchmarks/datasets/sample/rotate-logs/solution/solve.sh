#!/bin/bash
set -eu
cat > rotate.sh <<'SH'
#!/bin/bash
# Rotate the log files of a folder: rotate.sh FOLDER KEEP
set -euo pipefail
export LC_ALL=C
shopt -s nullglob dotglob

usage() {
    echo "usage: rotate.sh FOLDER KEEP: $1" >&2
    exit 2
}

[[ $# -eq 2 ]] || usage "two arguments are needed"
[[ -d $1 ]] || usage "no folder $1"
[[ $2 =~ ^[0-9]+$ ]] || usage "no whole number: $2"
cd -- "$1"
keep=$((10#$2))

for log in *.log; do
    [[ -f ./$log && ! -L ./$log && -s ./$log ]] || continue
    numbers=()
    for old in "./$log".*; do
        number=${old##*.}
        [[ $number =~ ^[1-9][0-9]*$ && -f $old ]] && numbers+=("$number")
    done
    while read -r number; do
        [[ -n $number ]] || continue
        if ((number >= keep)); then
            rm -f -- "./$log.$number"
        else
            mv -- "./$log.$number" "./$log.$((number + 1))"
        fi
    done < <(printf '%s\n' "${numbers[@]}" | sort -rn)
    mode=$(stat -c %a -- "./$log")
    if ((keep > 0)); then
        mv -- "./$log" "./$log.1"
    else
        rm -f -- "./$log"
    fi
    (umask 077 && : > "./$log")
    chmod "$mode" -- "./$log"
    echo "rotated $log"
done
SH
chmod +x rotate.sh
