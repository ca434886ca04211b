import pytest
from hermes_envs.harbor.dockerfile import workdir_of


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("FROM a\n", None),
        ("FROM a\nWORKDIR /app\nRUN x\n", "/app"),
        ("FROM a\nworkdir '/app'\nWORKDIR sub/../deep\n", "/app/deep"),
        ("FROM a\nWORKDIR relative\n", None),
        ("FROM a\nWORKDIR /app/$NAME\n", None),
        ("FROM a\n# WORKDIR /no\nRUN echo \\\n  WORKDIR /no\n", None),
        ("FROM --platform=linux/amd64 a AS one\nWORKDIR /one\nFROM b\n", None),
        ("FROM a AS one\nWORKDIR /one\nFROM b AS two\nFROM One\nWORKDIR in\n", "/one/in"),
    ],
)
def test_the_working_folder_is_that_of_the_last_stage(text: str, folder: str | None) -> None:
    assert workdir_of(text) == folder
