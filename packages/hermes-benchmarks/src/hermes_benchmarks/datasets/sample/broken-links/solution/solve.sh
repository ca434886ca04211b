#!/bin/bash
set -eu
python3 - <<'PY'
import os

root = os.path.realpath("site")
links, files = [], {}
for folder, folders, names in os.walk("site"):
    for name in folders + names:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            links.append(path)
        elif os.path.isfile(path):
            files.setdefault(name, []).append(path)


def point(link, target):
    here = os.path.dirname(link)
    os.unlink(link)
    os.symlink(os.path.relpath(target, here), link)


for link in sorted(links):
    target = os.readlink(link)
    if os.path.exists(link):
        if os.path.isabs(target):
            point(link, os.path.relpath(target, os.getcwd()))
    elif len(files.get(os.path.basename(target), [])) == 1 and not os.path.lexists(os.path.join(os.path.dirname(link), target)):
        point(link, files[os.path.basename(target)][0])
with open("broken.txt", "w") as out:
    out.writelines(link + "\n" for link in sorted(links, key=os.fsencode) if not os.path.exists(link))
PY
