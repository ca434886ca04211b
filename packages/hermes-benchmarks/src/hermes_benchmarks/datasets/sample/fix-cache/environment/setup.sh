#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p store
cp "$here"/cache.py "$here"/warm.py store/
touch store/__init__.py
