"""Every Python example that a README or the page on benchmarks of your own shows is run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md")), ROOT / "docs/eval-only-benchmark.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """Name and source of each example; one whose first line is a comment with `needs` shows a thing not had here."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        blocks: list[str] = BLOCK.findall(page.read_text())
        name = page.relative_to(ROOT)
        found += [
            (f"{name}:{n}", block) for n, block in enumerate(blocks, 1) if not block.startswith("# needs")
        ]
    return found


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in examples()])
def test_example_runs(source: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(source)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_root_readme_shows_every_package() -> None:
    text = PAGES[0].read_text()
    for folder in (ROOT / "packages").iterdir():
        assert f"### {folder.name}" in text
