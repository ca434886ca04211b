#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
here=$(cd "$(dirname "$0")" && pwd)
commit() {
    git add -A
    GIT_AUTHOR_DATE="2024-02-0$1T08:00:00Z" GIT_COMMITTER_DATE="2024-02-0$1T08:00:00Z" git commit -q -m "$2"
}
git init -q -b main todo
cd todo
git config user.name "A. Person"
git config user.email "person@example.com"
cp "$here/base.py" todo.py
printf '# todo\n\nA list of things to do, in `todo.json`.\n\n## add and list\n\n`python3 todo.py add TEXT`, `python3 todo.py list`\n' > README.md
printf 'todo.json\n__pycache__/\n' > .gitignore
commit 1 "Add and list items"
git checkout -q -b priorities
cp "$here/priorities.py" todo.py
printf '\n## priorities\n\n`python3 todo.py add --high TEXT` puts an item at the top of the list.\n' >> README.md
commit 2 "Show important items first"
git checkout -q main
cp "$here/done.py" todo.py
printf '\n## done\n\n`python3 todo.py done N` marks an item as done.\n' >> README.md
commit 3 "Mark items as done"
