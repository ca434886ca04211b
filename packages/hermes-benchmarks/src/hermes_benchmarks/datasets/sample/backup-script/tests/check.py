"""Judge of the task backup-script."""

import json
import os
import re
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

PARTIAL = False
STAMP = "20240605T070809Z"


@contextmanager
def playground(name="my site"):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "some where", name)
        (source / "empty dir").mkdir(parents=True)
        (source / "a file").write_text("content\n")
        (source / ".hidden").write_text("hidden\n")
        (source / "link").symlink_to("a file")
        yield Path(folder)


def backup(folder, *arguments, stamp=STAMP):
    env = {"PATH": os.environ["PATH"], **({"BACKUP_STAMP": stamp} if stamp else {})}
    command = [str(Path("backup.sh").resolve()), *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=30)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def check_content_of_the_archive():
    with playground() as folder:
        ran = backup(folder, "some where/my site/", "back ups")
        assert (ran.returncode, ran.stdout) == (0, f"back ups/my site-{STAMP}.tar.gz\n"), ran.stderr
        with tarfile.open(folder / f"back ups/my site-{STAMP}.tar.gz") as archive:
            members = {os.path.normpath(member.name): member for member in archive if os.path.normpath(member.name) != "."}
        assert sorted(members) == ["my site", *(f"my site/{name}" for name in (".hidden", "a file", "empty dir", "link"))]
        assert members["my site/link"].issym() and members["my site/empty dir"].isdir()


def check_odd_names():
    for name in ("-rf", "a*b", "new\nline", "dollar $HOME", "quote'd"):
        with playground(name) as folder:
            ran = backup(folder, str(folder / "some where" / name), "t/")
            assert ran.returncode == 0 and names(folder / "t") == [f"{name}-{STAMP}.tar.gz"], (name, ran.stderr)


def check_only_the_oldest_of_this_name_go():
    others = ["my site-app-20200101T000000Z.tar.gz", "my site-notes.tar.gz", "my site-20200101T000000Z.zip", "x.txt"]
    stamps = ["20240101T000000Z", "20240301T000000Z", "20230101T000000Z"]
    with playground() as folder:
        (folder / "t").mkdir()
        for name in [*others, *(f"my site-{stamp}.tar.gz" for stamp in stamps)]:
            (folder / "t" / name).write_text(name)
        os.utime(folder / "t" / "my site-20230101T000000Z.tar.gz")
        assert backup(folder, "some where/my site", "t", "2").returncode == 0
        assert names(folder / "t") == sorted([*others, "my site-20240301T000000Z.tar.gz", f"my site-{STAMP}.tar.gz"])


def check_default_is_three():
    with playground() as folder:
        for month in range(1, 6):
            assert backup(folder, "some where/my site", "t", stamp=f"20240{month}01T000000Z").returncode == 0
        assert names(folder / "t") == [f"my site-20240{month}01T000000Z.tar.gz" for month in (3, 4, 5)]


def check_stamp_of_now():
    with playground() as folder:
        assert backup(folder, "some where/my site", "t", stamp=None).returncode == 0
        assert re.fullmatch(r"my site-\d{8}T\d{6}Z\.tar\.gz", names(folder / "t")[0])


def check_nothing_is_overwritten():
    with playground() as folder:
        (folder / "t").mkdir()
        (folder / "t" / f"my site-{STAMP}.tar.gz").write_text("precious")
        ran = backup(folder, "some where/my site", "t")
        assert ran.returncode == 1 and ran.stderr and not ran.stdout
        assert (folder / "t" / f"my site-{STAMP}.tar.gz").read_text() == "precious" and len(names(folder / "t")) == 1


def check_failed_packing_leaves_nothing():
    with playground() as folder:
        (folder / "t").mkdir()
        for month in range(1, 5):
            (folder / "t" / f"my site-20240{month}01T000000Z.tar.gz").write_text("old")
        (folder / "bin").mkdir()
        (folder / "bin" / "tar").write_text("#!/bin/sh\necho broken >&2\nexit 2\n")
        (folder / "bin" / "tar").chmod(0o755)
        env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "BACKUP_STAMP": STAMP}
        command = [str(Path("backup.sh").resolve()), "some where/my site", "t", "1"]
        ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=30)
        assert ran.returncode == 1 and not ran.stdout, ran.returncode
        assert names(folder / "t") == [f"my site-20240{month}01T000000Z.tar.gz" for month in range(1, 5)]


def check_wrong_usage():
    with playground() as folder:
        wrong = [(), ("some where/my site",), ("nowhere", "t"), ("some where/my site", "t", "0"), ("some where/my site", "t", "x")]
        wrong += [("some where/my site/a file", "t"), ("some where/my site", "t", "1", "2")]
        for arguments in wrong:
            ran = backup(folder, *arguments)
            assert ran.returncode == 2 and ran.stderr and not ran.stdout, arguments
            assert not (folder / "t").exists(), arguments


# From here on every sample task is the same: run the checks, say what happened, write report and verdict.
def run_checks():
    results = []
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check()
                results.append((name, ""))
            except Exception as error:
                results.append((name, f"{type(error).__name__}: {error}"))
            print(f"{'FAILED' if results[-1][1] else 'PASSED'} {name} {results[-1][1]}".rstrip())
    return results


def write_verdict(results):
    logs = Path(os.environ.get("TASK_ROOT", "") + "/logs/verifier")
    logs.mkdir(parents=True, exist_ok=True)
    failed = sum(bool(message) for _, message in results)
    passed = len(results) - failed
    tests = [
        {"name": name, "status": "failed" if message else "passed", "duration": 0, "message": message}
        for name, message in results
    ]
    summary = {"tests": len(results), "passed": passed, "failed": failed}
    report = {"results": {"tool": {"name": "check.py"}, "summary": summary, "tests": tests}}
    (logs / "ctrf.json").write_text(json.dumps(report, indent=1))
    print(f"==== {f'{failed} failed, ' if failed else ''}{passed} passed ====")
    reward = passed / len(results) if PARTIAL else float(not failed)
    (logs / "reward.txt").write_text(f"{reward:g}\n")


write_verdict(run_checks())
