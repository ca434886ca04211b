#!/bin/bash
set -eu
cd notes
tip=$(git reflog --format='%H %gs' | awk '/commit: Count what was found/ {print $1; exit}')
git branch search "$tip"
git rebase -q main search
git checkout -q main
git log --reverse --format=%s main..search > ../recovered.txt
