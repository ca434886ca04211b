"""The to-do list."""

from hermes_tools_calls import fail, succeed


async def test_writing_merging_and_reading(open_session):
    session = open_session("todo")
    assert (await succeed(session, "todo"))["todos"] == []
    first = [{"id": 1, "content": "dig", "status": "in progress"}, {"id": "2", "content": "fill"}]
    assert "status" in await fail(session, "todo", todos=first)
    first[0]["status"] = "IN_PROGRESS"
    result = await succeed(session, "todo", todos=first)
    assert result["todos"][0] == {"id": "1", "content": "dig", "status": "in_progress"}
    assert result["summary"] == {"total": 2, "pending": 1, "in_progress": 1, "completed": 0, "cancelled": 0}
    update = [{"id": "1", "status": "completed"}, {"id": "3", "content": "rest"}]
    merged = await succeed(session, "todo", todos=update, merge=True)
    assert [(item["id"], item["status"]) for item in merged["todos"]] == [
        ("1", "completed"),
        ("2", "pending"),
        ("3", "pending"),
    ]
    assert (await succeed(session, "todo"))["todos"] == merged["todos"]
    replaced = await succeed(session, "todo", todos='[{"id": "9", "content": "new"}]')
    assert [item["id"] for item in replaced["todos"]] == ["9"]


async def test_wrong_lists_change_nothing(open_session):
    session = open_session("todo")
    await succeed(session, "todo", todos=[{"id": "1", "content": "a"}])
    assert "needs content" in await fail(session, "todo", todos=[{"id": "2", "status": "pending"}])
    assert "Two items" in await fail(
        session, "todo", todos=[{"id": "2", "content": "x"}, {"id": "2", "content": "y"}]
    )
    assert [item["id"] for item in (await succeed(session, "todo"))["todos"]] == ["1"]


async def test_sessions_have_their_own(open_session):
    one, two = open_session("todo"), open_session("todo")
    await succeed(one, "todo", todos=[{"id": "1", "content": "a"}])
    assert (await succeed(two, "todo"))["todos"] == []
