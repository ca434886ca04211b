"""Task folders made for tests."""

from pathlib import Path

CHECK = """#!/bin/bash
mkdir -p "${TASK_ROOT:-}/logs/verifier"
if [ "$(cat answer.txt 2>/dev/null)" = 42 ]; then
    echo "PASSED check_answer"; echo "==== 1 passed ===="; failed=0; status=passed; echo 1 >"${TASK_ROOT:-}/logs/verifier/reward.txt"
else
    echo "FAILED check_answer"; echo "==== 1 failed ===="; failed=1; status=failed; echo 0 >"${TASK_ROOT:-}/logs/verifier/reward.txt"
fi
printf '{"results": {"summary": {"tests": 1, "failed": %s}, "tests": [{"name": "check_answer", "status": "%s", "duration": 1}]}}' \\
    $failed $status >"${TASK_ROOT:-}/logs/verifier/ctrf.json"
"""
DOCKERFILE = "FROM hermes-test:bookworm\nWORKDIR /app\n"
TOML = """version = "1.0"

[metadata]
category = "tests"
local = true

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 60.0
"""


def make_task(
    folder: Path,
    *,
    name: str = "answer",
    toml: str = TOML,
    test_sh: str = CHECK,
    dockerfile: str | None = DOCKERFILE,
    setup: str = "echo 'what is 6 times 7?' >question.txt\n",
    solve: str | None = "echo 42 >answer.txt\n",
    instruction: str | None = "Write the answer into answer.txt.\n",
) -> Path:
    """Write a task folder and return it."""
    path = folder / name
    files = {
        "task.toml": toml,
        "instruction.md": instruction,
        "environment/Dockerfile": dockerfile,
        "environment/setup.sh": setup,
        "solution/solve.sh": solve,
        "tests/test.sh": test_sh,
    }
    for relative, content in files.items():
        if content is not None:
            file = path / relative
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    return path
