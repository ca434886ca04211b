"""Which planted files are told from what installers honestly leave."""

import pytest
from hermes_envs.harbor import guard

COVERAGE = (
    rb"""import sys; exec('import os\n\nif os.getenv("COVERAGE_PROCESS_START") or os.getenv("COVERAGE_PROCESS_CONFIG"):"""
    rb"""\n try:\n  import coverage\n except:\n  pass\n else:\n  coverage.process_startup(slug="pth")')"""
)
DISTUTILS = (
    b"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
    b"enabled and __import__('_distutils_hack').add_shim(); "
)
PIP = b"""#!/usr/local/bin/python3.13
import sys
from pip._internal.cli.main import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""
PYTEST = b"""#!/usr/bin/python3
# -*- coding: utf-8 -*-
import re
import sys
from pytest import console_main
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script\\.pyw|\\.exe)?$", "", sys.argv[0])
    sys.exit(console_main())
"""
DEBIAN = b"""# install the apport exception handler if available
try:
    import apport_python_hook
except ImportError:
    pass
else:
    apport_python_hook.install()
"""


class Disk:
    """A sandbox of one file."""

    workdir = "/app"

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def read_bytes(self, path: str, *, limit: int) -> bytes:
        return self.content[:limit]


@pytest.mark.parametrize(
    ("path", "content", "changed"),
    [
        ("/usr/local/bin/pip", PIP, False),
        ("/usr/local/bin/pytest", PYTEST, False),
        ("/usr/local/bin/curl", b"\x7fELF...", False),
        ("/usr/bin/python3.12", b"\x7fELF...", True),
        ("/usr/lib/python3/dist-packages/p.pth", b"/opt/project\n# a comment\n", False),
        (
            "/usr/lib/python3/dist-packages/p.pth",
            b"import __editable___foo_1_0_finder; __editable___foo_1_0_finder.install()",
            False,
        ),
        ("/usr/lib/python3/dist-packages/c.pth", COVERAGE + b"\n", False),
        ("/usr/lib/python3/dist-packages/d.pth", DISTUTILS, False),
        ("/usr/lib/python3.11/sitecustomize.py", DEBIAN, False),
        ("/etc/wgetrc", b"# settings\n\npassive_ftp = on\n", False),
        ("/etc/apt/apt.conf.d/90", b'APT::Install-Recommends "false";\n', False),
    ],
)
async def test_what_installers_leave_stays(path: str, content: bytes, changed: bool) -> None:
    assert not await guard._must_go(Disk(content), path, changed=changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "content", "changed"),
    [
        ("/usr/local/bin/python3", b"#!/bin/sh\necho 1 >/logs/verifier/reward.txt\n", False),
        ("/usr/local/bin/pip", PIP + b"import os\n", False),
        ("/usr/local/bin/pytest", PYTEST.replace(b"from pytest", b"from evil"), False),
        ("/usr/bin/bash", b"\x7fELF another", True),
        ("/usr/bin/python3", b"#!/bin/sh\n", True),
        ("/usr/lib/python3/dist-packages/p.pth", b"/opt/project\nimport os; os.system('x')\n", False),
        ("/usr/lib/python3/dist-packages/c.pth", COVERAGE + b"; evil()\n", False),
        (
            "/usr/lib/python3/dist-packages/n.pth",
            b"import sys, types, os;exec('x');f_locals['sitedir']",
            False,
        ),
        ("/usr/lib/python3.11/sitecustomize.py", DEBIAN + b"import evil\n", False),
        ("/usr/lib/python3/dist-packages/apport_python_hook.py", b"def install(): ...\n", False),
        ("/etc/ld.so.preload", b"/usr/lib/evil.so\n", False),
        ("/root/.curlrc", b"--url https://example.org\n", False),
        ("/etc/apt/apt.conf.d/zz", b'DPkg::Post-Invoke {"x";};\n', False),
        ("/conftest.py", b"import pytest\n", False),
    ],
)
async def test_what_could_mislead_goes(path: str, content: bytes, changed: bool) -> None:
    assert await guard._must_go(Disk(content), path, changed=changed)  # type: ignore[arg-type]


async def test_a_project_at_the_root_is_the_agents_work() -> None:
    disk = Disk(b"[tool.pytest.ini_options]\n")
    disk.workdir = "/"
    assert not await guard._must_go(disk, "/pyproject.toml", changed=False)  # type: ignore[arg-type]
