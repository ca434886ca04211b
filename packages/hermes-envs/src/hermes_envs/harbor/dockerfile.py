"""What a Dockerfile says of its image, for backends that keep an image's files and forget its settings."""

import posixpath
import re

_INSTRUCTION = re.compile(r"^\s*(FROM|WORKDIR)\s+(.+?)\s*$", re.IGNORECASE)


def workdir_of(text: str) -> str | None:
    """The folder where commands of the image start; None where the Dockerfile leaves it to its base or to a variable."""
    stages: dict[str, str | None] = {}
    folder: str | None = None
    name = ""
    for line in text.replace("\\\n", " ").splitlines():
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        given = found[2]
        if found[1].upper() == "FROM":
            words = [word for word in given.split() if not word.startswith("--")]
            folder = stages.get(words[0].lower())
            name = words[2].lower() if len(words) > 2 else ""
        else:
            given = given.strip("\"'")
            rooted = given.startswith("/") or folder is not None
            folder = (
                posixpath.normpath(posixpath.join(folder or "/", given))
                if rooted and "$" not in given
                else None
            )
        stages[name] = folder
    return folder
