#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
mkdir -p example/archive
printf 'started\nstopped\n' > example/app.log
printf 'older\n' > example/app.log.1
printf 'oldest\n' > example/app.log.2
printf 'GET /\n' > "example/web access.log"
: > example/idle.log
printf 'not a log\n' > example/readme.txt
printf 'deep\n' > example/archive/deep.log
chmod 600 example/app.log
