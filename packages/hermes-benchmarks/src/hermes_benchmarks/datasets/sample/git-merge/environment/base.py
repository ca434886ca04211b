"""A list of things to do."""

import json
import sys
from pathlib import Path

FILE = Path("todo.json")


def load():
    return json.loads(FILE.read_text()) if FILE.exists() else []


def save(items):
    FILE.write_text(json.dumps(items))


def add(text):
    save([*load(), {"text": text}])


def show():
    for number, item in enumerate(load(), 1):
        print(f"{number}. {item['text']}")


def main(command, *arguments):
    if command == "add":
        add(" ".join(arguments))
    elif command == "list":
        show()
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
