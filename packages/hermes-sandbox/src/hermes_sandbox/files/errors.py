"""What can be wrong with an archive."""

from hermes_sandbox.errors import SandboxError, UnsafeArchive


class ArchiveError(SandboxError):
    """The bytes are no complete tar archive of a kind that is read here."""


class UnsafeEntry(UnsafeArchive):
    """An archive entry would write, link or point outside its target, or is a device. Nothing of it was written.

    Attributes:
        name: The entry's name in the archive.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"refused to unpack {name!r}: {why}; pass unsafe='skip' to leave such entries out and unpack the rest"
        )
        self.name = name
