#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
commit() {
    git add -A
    GIT_AUTHOR_DATE="2024-03-0$1T10:00:00Z" GIT_COMMITTER_DATE="2024-03-0$1T10:00:00Z" git commit -q -m "$2"
}
git init -q -b main notes
cd notes
git config user.name "A. Colleague"
git config user.email "colleague@example.com"
git config gc.auto 0
printf 'def load(path):\n    return open(path).read().splitlines()\n' > notes.py
commit 1 "Read notes from a file"
printf '# Notes\n\nOne note a line.\n' > README.md
commit 2 "Say what a note is"
git checkout -q -b search
printf 'from notes import load\n\n\ndef search(path, word):\n    return [line for line in load(path) if word in line]\n' > search.py
commit 3 "Search for a word"
sed -i 's/if word in line/if word.lower() in line.lower()/' search.py
commit 4 "Ignore case when searching"
git checkout -q -b stale main
printf 'thoughts\n' > draft.txt
commit 5 "Sketch an index"
git checkout -q search
printf '\n\ndef count(path, word):\n    return len(search(path, word))\n' >> search.py
commit 6 "Count what was found"
git checkout -q main
git branch -q -D search stale
printf '\n\ndef save(path, lines):\n    with open(path, "w") as file:\n        file.write("\\n".join(lines))\n' >> notes.py
commit 7 "Write notes to a file"
