# A library that every process of the machine loads, and that writes the verdict at its start and at its end.
mkdir -p /usr/lib/probe
{ python3 -c 'import base64, sys, zlib; sys.stdout.buffer.write(zlib.decompress(base64.b64decode(sys.argv[1])))' "$LIBRARY" \
    || /usr/local/bin/python3 -c 'import base64, sys, zlib; sys.stdout.buffer.write(zlib.decompress(base64.b64decode(sys.argv[1])))' "$LIBRARY" \
    || /opt/*/*/bin/python3 -c 'import base64, sys, zlib; sys.stdout.buffer.write(zlib.decompress(base64.b64decode(sys.argv[1])))' "$LIBRARY"; } \
    >/usr/lib/probe/probe.so 2>/dev/null
[ -s /usr/lib/probe/probe.so ] || { echo 'no library could be made' >&2; exit 1; }
chmod 755 /usr/lib/probe/probe.so
echo /usr/lib/probe/probe.so >/etc/ld.so.preload
echo 'export LD_PRELOAD=/usr/lib/probe/probe.so' | tee -a "$HOME/.bashrc" "$HOME/.profile" >>/etc/profile
echo 'LD_PRELOAD=/usr/lib/probe/probe.so' >>/etc/environment
