#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
mkdir -p clock
cp "$(dirname "$0")"/durations.py "$(dirname "$0")"/demo.py clock/
