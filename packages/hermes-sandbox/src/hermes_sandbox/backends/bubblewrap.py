"""The command line of bubblewrap for a local sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_sandbox.owned_folders import OwnedFolder

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
SETTINGS = (
    *("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "host.conf", "services", "protocols"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "alternatives", "mime.types"),
    *("ssl", "ca-certificates", "pki", "os-release", "debian_version", "profile", "bash.bashrc", "inputrc"),
)


def bwrap_argv(
    bwrap: str, folder: OwnedFolder, cwd: str, env: Mapping[str, str], argv: Sequence[str]
) -> tuple[str, ...]:
    """A root of the sandbox's own, with the host's programs read-only, and namespaces for all else."""
    words = [bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    if folder.data["network"] != "none":
        words.append("--share-net")
    words += ["--bind", str(folder.path / "root"), "/"]
    for path in SYSTEM:
        words += ["--ro-bind-try", path, path]
    for name in SETTINGS:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--bind",
        str(folder.path / "tmp"),
        "/tmp",
        "--dir",
        "/root",
    ]
    for source, target, read_only in folder.data["mounts"]:
        words += ["--ro-bind" if read_only else "--bind", source, target]
    words += ["--clearenv"]
    for key, value in env.items():
        words += ["--setenv", key, value]
    # A session that begins inside: bash has no job control in one whose leader it cannot see.
    return (*words, "--chdir", cwd, "--", "setsid", *argv)
