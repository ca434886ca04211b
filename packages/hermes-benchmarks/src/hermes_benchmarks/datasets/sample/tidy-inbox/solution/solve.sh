#!/bin/bash
set -eu
python3 - <<'PY'
import hashlib
import os
import shutil

paths = []
for folder, _, names in os.walk(b"inbox"):
    paths += [os.path.relpath(os.path.join(folder, name), b"inbox") for name in names]
seen, taken, lines = set(), set(), []
for path in sorted(paths):
    data = open(os.path.join(b"inbox", path), "rb").read()
    digest = hashlib.sha256(data).hexdigest()
    if digest in seen:
        continue
    seen.add(digest)
    name = os.path.basename(path)
    stem, ending = os.path.splitext(name)
    extension = ending[1:].lower() or b"none"
    target, number = extension + b"/" + name, 1
    while target in taken:
        number += 1
        target = extension + b"/" + stem + b"-%d" % number + ending
    taken.add(target)
    os.makedirs(os.path.join(b"sorted", extension), exist_ok=True)
    shutil.copyfile(os.path.join(b"inbox", path), os.path.join(b"sorted", target))
    lines.append((target, digest))
with open("sorted/MANIFEST", "wb") as file:
    for target, digest in sorted(lines):
        file.write(digest.encode() + b"  " + target + b"\n")
shutil.rmtree("inbox")
PY
