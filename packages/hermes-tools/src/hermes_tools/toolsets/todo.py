"""The to-do list of one rollout."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from hermes_tools.errors import ToolError
from hermes_tools.registry import Toolset
from hermes_tools.session import ToolSession
from hermes_tools.tool import tool

Status = Literal["pending", "in_progress", "completed", "cancelled"]
MAX_ITEMS = 500


class TodoItem(BaseModel):
    """One thing to do."""

    id: Annotated[str, Field(min_length=1, description="A short name, unique in the list.")]
    content: Annotated[str, Field(description="What is to be done.")]
    status: Annotated[Status, Field(description="How far it is.")] = "pending"


class TodoUpdate(BaseModel):
    """A change to one thing to do; all of a new one."""

    id: Annotated[str, Field(min_length=1, description="A short name, unique in the list.")]
    content: Annotated[str | None, Field(description="What is to be done; needed for a new item.")] = None
    status: Annotated[Status | None, Field(description="How far it is; by default pending.")] = None


@dataclass(frozen=True, slots=True)
class TodoSummary:
    """How many items have each status.

    Attributes:
        total: All items.
        pending: Not begun.
        in_progress: Being done.
        completed: Done.
        cancelled: Given up.
    """

    total: int
    pending: int
    in_progress: int
    completed: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class TodoResult:
    """The list as it is now.

    Attributes:
        todos: Its items, in order.
        summary: Counts by status.
    """

    todos: list[TodoItem]
    summary: TodoSummary


class TodoList:
    """The items of one session."""

    def __init__(self, session: ToolSession) -> None:
        self.items: dict[str, TodoItem] = {}


@tool(toolset="todo", lane="todo", deadline=10)
async def todo(
    session: ToolSession,
    todos: Annotated[
        list[TodoUpdate] | None, "The items to write, the most important first; leave out to read the list."
    ] = None,
    merge: Annotated[
        bool, "True: change items of the same id and add new ones. False: replace the whole list."
    ] = False,
) -> TodoResult:
    """Keep a to-do list for a task of several steps.

    Without todos the list is read. Keep one item in_progress, and mark items completed as soon as they are.
    """
    held = session.state(TodoList)
    if todos is not None:
        held.items = _updated(dict(held.items) if merge else {}, todos)
    items = list(held.items.values())
    counts = {status: sum(item.status == status for item in items) for status in Status.__args__}
    return TodoResult(items, TodoSummary(len(items), **counts))


def _updated(items: dict[str, TodoItem], updates: list[TodoUpdate]) -> dict[str, TodoItem]:
    seen: set[str] = set()
    for update in updates:
        if update.id in seen:
            raise ToolError(f"Two items have the id {update.id!r}. Nothing was changed.")
        seen.add(update.id)
        old = items.get(update.id)
        content = update.content if update.content is not None else old and old.content
        if content is None:
            raise ToolError(f"The new item {update.id!r} needs content. Nothing was changed.")
        status = update.status or (old.status if old else "pending")
        items[update.id] = TodoItem(id=update.id, content=content, status=status)
    if len(items) > MAX_ITEMS:
        raise ToolError(f"The list may have at most {MAX_ITEMS} items.")
    return items


TODO = Toolset("todo", "A to-do list for tasks of several steps.", (todo,))
