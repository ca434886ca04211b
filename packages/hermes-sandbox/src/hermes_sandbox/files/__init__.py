"""Streamed tar archives between this machine and a sandbox: packed from a tree, unpacked safely into one.

`pack(local)` is an async iterator of archive bytes for the sandbox's `tar -x`; `Unpacker(target)` takes the
bytes of a `tar -c` inside the sandbox. Both hold about a megabyte whatever the size of the files, and do
their reading and writing on threads.
"""

from hermes_sandbox.files.errors import ArchiveError, UnsafeEntry
from hermes_sandbox.files.packing import pack
from hermes_sandbox.files.unpacking import Unpacker, unpack

__all__ = ["ArchiveError", "Unpacker", "UnsafeEntry", "pack", "unpack"]
