"""A list of things to do."""

import json
import sys
from pathlib import Path

FILE = Path("todo.json")


def load():
    items = json.loads(FILE.read_text()) if FILE.exists() else []
    return sorted(items, key=lambda item: not item.get("high"))


def save(items):
    FILE.write_text(json.dumps(items))


def add(text, high):
    save([*load(), {"text": text, "high": high}])


def show():
    for number, item in enumerate(load(), 1):
        print(f"{number}. {'! ' if item.get('high') else ''}{item['text']}")


def main(command, *arguments):
    if command == "add":
        high = arguments[:1] == ("--high",)
        add(" ".join(arguments[1:] if high else arguments), high)
    elif command == "list":
        show()
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
