"""What a sandbox should be."""

from pathlib import Path
from typing import Any

import pytest
from hermes_sandbox import Allow, Dockerfile, Mount, NamedNetwork, SandboxSpec


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpus", 0),
        ("memory_mb", -1),
        ("lifetime", 0),
        ("workdir", "relative"),
        ("network", "off"),
        ("env", {"A=B": "x"}),
        ("env", {"A": "nul\0"}),
    ],
)
def test_nonsense_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        SandboxSpec(**{field: value})


@pytest.mark.parametrize(("field", "value"), [("image", 5), ("env", {"A": 5}), ("env", {5: "A"})])
def test_another_type_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=field):
        SandboxSpec(**{field: value})


def test_a_digest_tells_equal_specs_from_others() -> None:
    def spec(**changes: Any) -> SandboxSpec:
        fields: dict[str, Any] = {
            "image": Dockerfile(Path("/x"), args={"a": "1", "b": "2"}),
            "mounts": [Mount("/a", "/b")],
            "network": Allow(("example.org",)),
        }
        return SandboxSpec(**{**fields, **changes})

    assert spec().digest() == spec(image=Dockerfile(Path("/x"), args={"b": "2", "a": "1"})).digest()
    others = [
        spec(network=NamedNetwork("example.org")),
        spec(mounts=[Mount("/a", "/b", read_only=False)]),
        spec(image="/x"),
        spec(user="me"),
    ]
    assert len({spec().digest(), *(other.digest() for other in others)}) == 5
