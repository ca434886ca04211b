"""Changes to several files that are made all or not at all."""

import asyncio
import contextlib
import posixpath
import shlex

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.toolsets.file.diff import created_diff, deleted_diff
from hermes_tools.toolsets.file.missing import not_found
from hermes_tools.toolsets.file.text import TextFile, binary_kind, decode

MAX_FILE = 16 << 20
UNDO_SECONDS = 10.0


class Changes:
    """Changes collected in memory; `commit` writes them, and takes all back when one cannot be written."""

    def __init__(self, session: ToolSession) -> None:
        self._session = session
        self._workspace = session.workspace
        # What each file holds after the changes so far, None for a file that goes.
        self._now: dict[str, str | None] = {}
        self._originals: dict[str, tuple[bytes, TextFile, bool] | None] = {}
        self._moves: dict[str, str] = {}
        self._diffs: list[str] = []
        self.modified: list[str] = []
        self.created: list[str] = []
        self.deleted: list[str] = []

    @property
    def diff(self) -> str:
        """The unified diff of all changes."""
        return "".join(self._diffs)

    async def text(self, path: str) -> str:
        """A file's text after the changes so far, with plain line feeds.

        Raises:
            ToolError: It is missing, a folder, binary or too large.
        """
        if path not in self._now:
            await self._load(path)
        text = self._now[path]
        if text is None:
            raise ToolError(f"File not found: {path}. The patch removed it before.")
        return text

    async def _load(self, path: str) -> None:
        try:
            data = await self._workspace.read_bytes(path, limit=MAX_FILE + 1)
        except FileNotFoundError:
            raise await not_found(self._session, path) from None
        except IsADirectoryError:
            raise ToolError(f"{path} is a folder.") from None
        if len(data) > MAX_FILE:
            raise ToolError(f"{path} is larger than {MAX_FILE >> 20} MiB; change it with the terminal.")
        if kind := binary_kind(data):
            raise ToolError(f"{path} is no text ({kind}); change it with the terminal.")
        file = decode(data)
        windows = "\r\n" in file.text and file.text.count("\n") == file.text.count("\r\n")
        self._originals[path] = (data, file, windows)
        self._now[path] = file.text.replace("\r\n", "\n") if windows else file.text

    def update(self, path: str, text: str, diff: str) -> None:
        """A file gets a new text."""
        self._now[path] = text
        self._diffs.append(diff)
        if path not in (*self.modified, *self.created, *self._moves):
            self.modified.append(path)

    async def create(self, path: str, text: str) -> None:
        """A file is made.

        Raises:
            ToolError: It is there already.
        """
        if await self._exists(path):
            raise ToolError(f"{path} exists already. Use `*** Update File:` to change it.")
        self._now[path] = text
        self._originals.setdefault(path, None)
        self._diffs.append(created_diff(path, text))
        self.created.append(path)

    def delete(self, path: str, text: str) -> None:
        """A file is removed."""
        self._now[path] = None
        self._diffs.append(deleted_diff(path, text))
        self.deleted.append(path)

    async def move(self, path: str, new_path: str) -> None:
        """A file gets a new path.

        Raises:
            ToolError: Something is there already.
        """
        if await self._exists(new_path):
            raise ToolError(f"Cannot move {path}: {new_path} exists already.")
        if path in self.modified:
            self.modified.remove(path)
            self.deleted.append(path)
        else:
            self.created.remove(self._moves.get(path, path))
        self.created.append(new_path)
        self._moves[path] = new_path

    async def _exists(self, path: str) -> bool:
        if path in self._now:
            return self._now[path] is not None
        try:
            await self._workspace.read_bytes(path, limit=0)
        except FileNotFoundError:
            return path in self._moves.values()
        except (IsADirectoryError, PermissionError):
            return True
        return True

    def _encoded(self, path: str, text: str) -> bytes:
        original = self._originals[path]
        if original is None:
            return text.encode("utf-8")
        _, file, windows = original
        return file.encode(text.replace("\n", "\r\n") if windows else text)

    async def commit(self) -> None:
        """Write everything; when something cannot be written, or on a cancellation, put back what was."""
        written = {path: self._encoded(path, text) for path, text in self._now.items() if text is not None}
        done: list[str] = []
        try:
            for path, data in written.items():
                done.append(path)
                await self._workspace.write_bytes(path, data)
            for path, new_path in self._moves.items():
                await self._run(
                    f"mkdir -p -- {_quote(posixpath.dirname(new_path))} && mv -n -- {_quote(path)} {_quote(new_path)}"
                )
            gone = [path for path, text in self._now.items() if text is None]
            if gone:
                done += [path for path in gone if self._originals[path] is not None]
                await self._run(f"rm -f -- {' '.join(map(_quote, gone))}")
        except (OSError, ToolError, TimeoutError) as error:
            await self._undo(done)
            raise ToolError(f"Nothing was changed: {error}") from error
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(UNDO_SECONDS):
                    await self._undo(done)
            raise

    async def _run(self, command: str) -> None:
        result = await self._workspace.exec(command, timeout=30)
        if result.exit_code != 0:
            raise ToolError(result.output.strip()[:500] or f"`{command[:80]}` failed")

    async def _undo(self, done: list[str]) -> None:
        for path, new_path in self._moves.items():
            script = f"[ -e {_quote(path)} ] || mv -n -- {_quote(new_path)} {_quote(path)}"
            await self._workspace.exec(script, timeout=30)
        for path in done:
            original = self._originals[path]
            if original is None:
                await self._workspace.exec(f"rm -f -- {_quote(path)}", timeout=30)
            else:
                await self._workspace.write_bytes(path, original[0])


def _quote(path: str) -> str:
    return shlex.quote(path)
