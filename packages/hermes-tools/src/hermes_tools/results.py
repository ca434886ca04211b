"""What a call gives back, and how large results are cut to the model's budget.

A result over its budget is kept whole in a file of the workspace; the model gets its head, its tail, its
size and the path, and reads more with the file tools when it wants to.
"""

import dataclasses
import json
import math
import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hermes_tools.session import ToolSession

JsonDict = dict[str, Any]
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ResultBudget:
    """How many characters of tool results a model is shown.

    Attributes:
        per_result: Most characters of one result.
        per_turn: Most characters of all results of one turn together, see `fit_turn`.
        preview: Characters of head and tail shown of a result that is over its budget.
        overrides: Other limits than `per_result`, by tool name.
    """

    per_result: int = 100_000
    per_turn: int = 200_000
    preview: int = 1_500
    overrides: Mapping[str, int] = field(default_factory=dict[str, int])

    def limit(self, tool_name: str) -> int:
        """The most characters one result of this tool may have."""
        return self.overrides.get(tool_name, self.per_result)


@dataclass(frozen=True, slots=True)
class Content:
    """A tool's result with pictures beside the text.

    Attributes:
        value: The result as text or JSON value.
        images: Data URLs (`data:image/png;base64,…`) for models that can see.
    """

    value: Any
    images: tuple[str, ...] = ()

    def parts(self, text: str) -> list[JsonDict]:
        """The OpenAI content parts of this result, given its text."""
        images = [{"type": "image_url", "image_url": {"url": url}} for url in self.images]
        return [{"type": "text", "text": text}, *images]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """One finished call.

    Attributes:
        text: JSON text for the model.
        error: What went wrong, or None.
        parts: OpenAI content parts when the result has pictures, else None.
        seconds: How long it took, waiting for other calls included.
    """

    text: str
    error: str | None = None
    parts: list[JsonDict] | None = None
    seconds: float = 0.0


def to_jsonable(value: Any) -> Any:
    """A result as plain JSON values.

    Dataclasses (fields that are None left out), pydantic models, collections, enumerations, paths and dates are known;
    anything else becomes its text.
    """
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers.
        return str(value)
    if value is None or (isinstance(value, str | int | float | bool) and not isinstance(value, Enum)):
        return value
    fields: dict[str, Any] | None = getattr(value, "__dataclass_fields__", None)
    if fields is not None and not isinstance(value, type):
        pairs = ((name, getattr(value, name)) for name in fields)
        return {name: to_jsonable(item) for name, item in pairs if item is not None}
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_jsonable(item) for item in cast("Iterable[Any]", value)]
    if isinstance(value, Enum):
        return to_jsonable(value.value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else str(value)


def result_text(value: Any) -> str:
    """The JSON text of a result. What is no JSON object becomes `{"result": value}`."""
    plain = to_jsonable(value)
    text = json.dumps(plain if isinstance(plain, dict) else {"result": plain}, ensure_ascii=False)
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def error_text(message: str, details: Mapping[str, Any] | None = None) -> str:
    """The JSON text of a failed call."""
    return result_text({"error": message, **(details or {})})


class ResultStore:
    """A folder of the workspace in which one session keeps what is too large to show."""

    def __init__(self, session: "ToolSession") -> None:
        self._workspace = session.workspace
        self._name = f"hermes-results.{secrets.token_hex(8)}"
        self._folder: str | None = None
        self._count = 0

    async def keep(self, data: str | bytes, suffix: str = ".txt") -> str:
        """Write something whole into the workspace and return its path."""
        self._count += 1
        name = f"{self._count:04d}{suffix}"
        raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
        # One command makes the folder, also when the model removed it, and writes the file.
        script = f'd="${{TMPDIR:-/tmp}}/{self._name}"; mkdir -p -m 700 -- "$d" && cat > "$d/{name}" && printf %s "$d"'
        written = await self._workspace.exec(script, stdin=raw, timeout=60)
        if written.exit_code != 0:
            raise OSError(written.output.strip() or f"exit code {written.exit_code}")
        self._folder = written.stdout.decode("utf-8", "surrogateescape")
        return f"{self._folder}/{name}"

    async def aclose(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            folder, self._folder = self._folder, None
            await self._workspace.exec(f"rm -rf -- {shlex.quote(folder)}", timeout=30)


async def keep_or_explain(session: "ToolSession", text: str, suffix: str = ".txt") -> tuple[str | None, str]:
    """Keep a text in the workspace; the path, or None, and a phrase that says where it is or why not."""
    try:
        path = await session.state(ResultStore).keep(text, suffix)
    except (OSError, ValueError, TimeoutError) as error:
        return None, f"could not be kept: {error}"
    return path, f"whole text in {path}"


async def cut_middle(session: "ToolSession", text: str, limit: int) -> tuple[str, str | None]:
    """A text cut to a limit, two fifths head and three fifths tail, and the path of the whole where it was cut."""
    if len(text) <= limit:
        return text, None
    path, where = await keep_or_explain(session, text)
    head, left_out = limit * 2 // 5, len(text) - limit
    mark = f"\n\n[... {left_out:,} of {len(text):,} characters left out; {where} ...]\n\n"
    return text[:head] + mark + text[head + left_out :], path


async def shorten(session: "ToolSession", text: str, preview: int) -> str:
    """Keep a result's text in the workspace and return the JSON text of its preview."""
    path, where = await keep_or_explain(session, text, ".json")
    head = preview * 3 // 5
    return result_text(
        {
            "truncated": True,
            "total_chars": len(text),
            "full_result": path,
            "note": f"This result is too large to show: {where}. Read it in pieces or search in it.",
            "head": text[:head],
            "tail": text[len(text) - (preview - head) :],
        }
    )


async def fit_result(session: "ToolSession", tool_name: str, text: str) -> str:
    """A result's text, cut to the budget of one result."""
    budget = session.budget
    return text if len(text) <= budget.limit(tool_name) else await shorten(session, text, budget.preview)


async def fit_turn(session: "ToolSession", outputs: Sequence[ToolOutput]) -> list[ToolOutput]:
    """The results of one turn, the largest shortened until all together keep to the turn's budget."""
    budget, fitted = session.budget, list(outputs)
    excess = sum(len(output.text) for output in fitted) - budget.per_turn
    for index in sorted(range(len(fitted)), key=lambda i: -len(fitted[i].text)):
        if excess <= 0 or len(fitted[index].text) <= 2 * budget.preview:
            break
        old = fitted[index]
        text = await shorten(session, old.text, budget.preview)
        parts = old.parts and [{"type": "text", "text": text}, *old.parts[1:]]
        fitted[index] = dataclasses.replace(old, text=text, parts=parts)
        excess -= len(old.text) - len(text)
    return fitted
