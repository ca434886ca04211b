#!/usr/bin/env bash
# YC-Bench with its default configuration; every argument is passed on, e.g. --model NAME or --agent greedy.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec uv run --project "$here" --python 3.12 --package hermes-benchmarks --extra yc-bench ycb evaluate --config default "$@"
