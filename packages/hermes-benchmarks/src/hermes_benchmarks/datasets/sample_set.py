"""The tasks that come with this package; `sample/README.md` describes them."""

from pathlib import Path


def sample_path() -> Path:
    """The folder of the packaged tasks."""
    return Path(__file__).parent / "sample"
