# Print `SHA256  PATH` (ended by NUL) for every file that can change what the judge's own commands do: the programs it
# is likely to call, in each folder of PATH, and whatever shells, loaders, Python and pytest read at their start.
# Then, one a line after an empty record, the programs by which the scan itself works: if these are sound, so is the list.
image_path=${IMAGE_PATH:-}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
shopt -s nullglob dotglob
homes=(/root)
[ -z "${IMAGE_HOME:-}" ] || [ "$IMAGE_HOME" = /root ] || [ ! -d "$IMAGE_HOME" ] || homes+=("$IMAGE_HOME")
files=()
IFS=: read -ra folders <<<"$image_path:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
for home in "${homes[@]}"; do
    folders+=("$home/.local/bin" "$home/.cargo/bin")
done
declare -A seen
for folder in "${folders[@]}"; do
    folder=$(readlink -f -- "$folder") || continue
    [ -d "$folder" ] && [ -z "${seen[$folder]:-}" ] || continue
    seen[$folder]=1
    for name in sh bash dash env cat echo printf test "[" true false ls cp mv rm ln mkdir chmod chown touch head tail grep sed awk mawk \
        gawk find xargs sort uniq wc cut tr tee stat date sleep timeout sha256sum md5sum diff cmp id whoami uname hostname dirname \
        basename readlink realpath mktemp tar gzip install umount curl wget apt-get apt dpkg git uv uvx pip pip3 pytest py.test python; do
        [ -f "$folder/$name" ] && files+=("$folder/$name")
    done
    for path in "$folder"/python[0-9]* "$folder"/pip3.*; do
        [ -f "$path" ] && files+=("$path")
    done
done
for path in /etc/ld.so.preload /etc/pip.conf /etc/uv/uv.toml /etc/gitconfig \
    /etc/curlrc /etc/wgetrc /pytest.ini /.pytest.ini /pytest.toml /.pytest.toml /tox.ini /setup.cfg /setup.py /pyproject.toml /conftest.py \
    /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    [ -f "$path" ] && files+=("$path")
done
for home in "${homes[@]}"; do
    for name in .curlrc .wgetrc .pip/pip.conf .config/pip/pip.conf .config/uv/uv.toml .local/bin/env; do
        [ -f "$home/$name" ] && files+=("$home/$name")
    done
done
while IFS= read -r -d '' path; do
    files+=("$path")
done < <(find /usr/lib /usr/local /opt "${homes[@]/%//.local}" /etc -xdev -maxdepth 6 \
    \( -name sitecustomize.py -o -name usercustomize.py -o -name apport_python_hook.py -o -name '*.pth' \) -path '*ython*' ! -type d -print0 2>/dev/null)
[ ${#files[@]} -eq 0 ] || sha256sum -z -- "${files[@]}" 2>/dev/null
printf '\0'
for name in env bash readlink find sha256sum; do
    path=$(type -P "$name") && readlink -f -- "$path"
done | sort -u
