# Make each argument an empty real folder, whatever stands there now: a link, a mount, files made immutable.
# Exits with 3 where that fails.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 022

clear_mounts() { # the deepest first; nothing else may hide what is removed
    local point
    while read -r point; do
        umount -l -- "$point" 2>/dev/null
    done < <(cut -d' ' -f5 /proc/self/mountinfo 2>/dev/null | grep -E "^$1(/|\$)" | sort -r)
}

for target in "$@"; do
    path=$TASK_ROOT
    rest=${target#"$TASK_ROOT"/}
    while [ -n "$rest" ]; do
        part=${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
        path=$path/$part
        if [ -L "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; }; then
            chattr -i -a -- "$path" 2>/dev/null
            rm -f -- "$path"
        fi
        [ -n "$rest" ] && mkdir -p -- "$path"
    done
    [ -n "$TASK_ROOT" ] || clear_mounts "$target"
    if [ -e "$target" ]; then
        chattr -R -i -a -- "$target" 2>/dev/null
        chmod -R u+rwx -- "$target" 2>/dev/null
        rm -rf -- "$target" 2>/dev/null || find "$target" -mindepth 1 -delete
    fi
    mkdir -p -- "$target"
    if [ -L "$target" ] || [ ! -d "$target" ] || [ -n "$(ls -A -- "$target")" ]; then
        echo "cannot clear $target" >&2
        exit 3
    fi
done
chmod 777 -- "$@"
