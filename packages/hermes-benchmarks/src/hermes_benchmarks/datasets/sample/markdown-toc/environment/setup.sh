#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
cp "$(dirname "$0")"/manual.md .
