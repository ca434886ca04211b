"""What the programs have in common that read pages for `readable`: hostile ones take for ever, or all memory."""

import json
import resource
import sys

MAX_MEMORY = 2 << 30
MAX_CPU_SECONDS = 60


def confine() -> None:
    """Bound what this process may use."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))


def answer(title: str, text: str) -> None:
    """Write what was found."""
    sys.stdout.buffer.write(json.dumps({"title": title, "text": text}).encode("ascii"))
