"""`.ci/drift.py`: that it finds what an SDK dropped, and that it knows every call that the cloud backends make."""

import ast
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
BACKENDS = ROOT / "packages/hermes-sandbox/src/hermes_sandbox/backends"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("drift", ROOT / ".ci/drift.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


drift = load()


class Sandbox:
    def __init__(self) -> None:
        self.object_id = "id"

    def create(self, image: str, timeout: int = 1) -> None: ...

    def exec(self, *argv: str, **options: object) -> None: ...


@dataclass
class Options:
    key: str


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module = ModuleType("standin_sdk")
    module.Sandbox, module.Options = Sandbox, Options  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "standin_sdk", module)
    yield module


def test_nothing_is_missed_where_everything_is_there(standin: ModuleType) -> None:
    text = """
        standin_sdk:Sandbox{object_id, create}
        standin_sdk:Sandbox.create(image, timeout)
        standin_sdk:Sandbox.exec(anything)
        standin_sdk:Options{key}
    """
    assert drift.dropped(text) == []


@pytest.mark.parametrize(
    ("use", "named"),
    [
        ("standin_sdk:Sandbox.terminate", "standin_sdk.Sandbox.terminate"),
        ("standin_sdk:Image.from_id(image_id)", "standin_sdk.Image.from_id"),
        ("standin_sdk:Sandbox.create(image, idle_timeout)", "standin_sdk.Sandbox.create(idle_timeout=)"),
        ("standin_sdk:Sandbox{object_id, app_id}", "standin_sdk.Sandbox.app_id"),
        ("standin_sdk:Options{secret}", "standin_sdk.Options.secret"),
        ("standin_sdk.errors:Gone", "standin_sdk.errors.Gone"),
    ],
)
def test_what_was_dropped_is_named(standin: ModuleType, use: str, named: str) -> None:
    assert drift.dropped(use) == [named]


def test_a_look_at_sdks_that_dropped_something_fails_and_says_so(
    standin: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drift, "USES", {"modal": "standin_sdk:Sandbox.terminate"})
    monkeypatch.setattr(drift, "version", lambda name: "9.9")
    monkeypatch.setattr(drift, "requires", lambda name: ["modal<2,>=1.6; extra == 'modal'"])
    assert drift.look() == 1
    out = capsys.readouterr().out
    assert "modal 9.9 (stated: modal<2,>=1.6) DROPPED" in out
    assert "standin_sdk.Sandbox.terminate" in out


def used(sdk: str) -> set[str]:
    """Dotted names that our backend takes from its SDK: of `sdk` and `errors`, and the methods with an `.aio`."""
    found: set[str] = set()
    for path in BACKENDS.glob(f"{sdk}*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                text = ast.unparse(node)
                head, _, rest = text.partition(".")
                if head in ("sdk", "errors"):
                    found.add(rest.removesuffix(".aio"))
                elif node.attr == "aio":
                    found.add(ast.unparse(node.value).rpartition(".")[2])
    return found


@pytest.mark.parametrize("sdk", ["modal", "daytona"])
def test_the_table_holds_every_name_that_the_backend_uses(sdk: str) -> None:
    known: set[str] = set()
    for use in drift.uses(drift.USES[sdk]):
        parts = use["name"].removesuffix(".aio").split(".")
        known |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)} | {parts[-1]}
    names = used(sdk)
    assert len(names) > 10, "the search finds nothing: the test shows nothing"
    assert names <= known
