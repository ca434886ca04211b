#!/bin/bash
# The same inbox as the one that the agent was given.
set -eu
python3 - <<'PY'
import os
import random

rng = random.Random(20240501)
folders = ["", "old", "old/2023", "from phone", "from phone/DCIM", "misc"]
stems = ["report", "notes", "photo", "data", "Meeting Minutes", "todo", "backup", "résumé", "-draft", "list*"]
endings = [".txt", ".TXT", ".csv", ".jpg", ".JPG", ".tar.gz", "", ".md"]
contents = [f"document {number}\n".encode() * rng.randint(1, 40) for number in range(26)] + [b""]
paths = set()
while len(paths) < 60:
    folder, stem, ending = rng.choice(folders), rng.choice(stems), rng.choice(endings)
    paths.add(os.path.join("inbox", folder, stem + ending))
paths |= {"inbox/.hidden", "inbox/misc/.config", "inbox/old/.profile.bak"}
for path in sorted(paths):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(rng.choice(contents) if rng.random() < 0.6 else path.encode() + b"\n")
os.makedirs("inbox/empty/deeper")
PY
