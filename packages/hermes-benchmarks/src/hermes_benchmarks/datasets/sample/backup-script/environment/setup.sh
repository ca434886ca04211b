#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
cp "$(dirname "$0")"/backup.sh .
chmod +x backup.sh
mkdir -p "data/my site/empty"
printf '<h1>hello</h1>\n' > "data/my site/index.html"
printf 'secret=1\n' > "data/my site/.env"
ln -s index.html "data/my site/start.html"
