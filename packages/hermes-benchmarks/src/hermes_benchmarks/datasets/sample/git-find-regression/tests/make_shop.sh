#!/bin/bash
# The same repository as the one that the agent was given.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init -q -b main shop
cd shop
git config user.name "Shop Keeper"
git config user.email "keeper@example.com"
python3 - <<'PY'
import calendar
import random
import subprocess

rng = random.Random(11)
HEAD = '"""Prices of the shop."""\n\nimport sys\nfrom decimal import ROUND_HALF_UP, Decimal\n\n'
GOOD = '''CENT = Decimal("0.01")


def total(count, price):
    """Price of `count` pieces, rounded to cents."""
    return (count * Decimal(price)).quantize(CENT, ROUND_HALF_UP)
'''
BAD = '''CENT = Decimal("0.1")


def total(count, price):
    """Price of `count` pieces, rounded."""
    return (count * Decimal(price)).quantize(CENT, ROUND_HALF_UP)
'''
MAIN = '\n\nif __name__ == "__main__":\n    print(total(int(sys.argv[1]), sys.argv[2]))\n'
stream, notes = [], ""


def commit(message, source):
    """Append a commit to the stream that git reads in the end."""
    number = len(stream) + 1
    when = calendar.timegm((2024, 4, 1, 0, 0, 0)) + number * 3600
    parts = [f"commit refs/heads/main\nmark :{number}\ncommitter Shop Keeper <keeper@example.com> {when} +0000\n"]
    for name, text in (None, message), ("price.py", source), ("NOTES.md", notes):
        if name is None or text:
            parts += [f"M 100644 inline {name}\n"] if name else []
            parts.append(f"data {len(text.encode())}\n{text}\n")
    stream.append("".join(parts))


def program(core, extras, broken=False):
    return HEAD + core + "".join(extras) + MAIN.replace("total(", "totl(" if broken else "total(")


extras = []
commit("Compute the price of several pieces", program(GOOD, extras))
core, broken = GOOD, False
for step in range(1, 41):
    if step == 26:
        core = BAD
        extras.append('\n\ndef vat(amount, rate="0.19"):\n    """Value added tax."""\n    return total(1, amount * Decimal(rate))\n')
        commit("Add value added tax, tidy up constants", program(core, extras))
    elif step in (8, 9, 22, 25):
        broken = step in (8, 22)
        commit("Refactor the command line", program(core, extras, broken))
    elif step % 7 == 3:
        name = f"discount_{step}"
        extras.append(f'\n\ndef {name}(amount):\n    """{step} percent off."""\n    return amount * {100 - step} / 100\n')
        commit(f"Add {name}", program(core, extras, broken))
    else:
        notes += f"* note {step}: {rng.choice(['call supplier', 'check stock', 'print labels'])}\n"
        commit(f"Note {step}", program(core, extras, broken))
stream.append("reset refs/tags/v1.0\nfrom :1\n")
subprocess.run(["git", "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
PY
git reset -q --hard
