#!/bin/bash
# -I and -S: nothing that the agent left behind (PYTHON* variables, sitecustomize, .pth files) runs in the judge.
exec python3 -I -S "${TASK_ROOT:-}/tests/check.py"
