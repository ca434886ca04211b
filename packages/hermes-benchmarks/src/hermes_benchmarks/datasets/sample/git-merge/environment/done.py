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
    save([*load(), {"text": text, "done": False}])


def done(number):
    items = load()
    if not 1 <= number <= len(items):
        sys.exit(f"there is no item {number}")
    items[number - 1]["done"] = True
    save(items)


def show():
    for number, item in enumerate(load(), 1):
        mark = "x" if item.get("done") else " "
        print(f"{number}. [{mark}] {item['text']}")


def main(command, *arguments):
    if command == "add":
        add(" ".join(arguments))
    elif command == "done":
        done(int(arguments[0]))
    elif command == "list":
        show()
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
