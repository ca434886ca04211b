import threading

import pytest
from hermes_benchmarks.record import TestDetail
from hermes_benchmarks.report import read_run, write_report
from hermes_benchmarks.report.view import make_server
from hermes_benchmarks_support import make_plan, make_run, record

pytestmark = pytest.mark.browser
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'><b>bold</b>"
TRAJECTORY = {
    "steps": [
        {"step_id": 1, "source": "user", "message": "Do it. " + HOSTILE},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I will.",
            "reasoning_content": "Let me think. " + HOSTILE,
            "tool_calls": [
                {
                    "tool_call_id": "1",
                    "function_name": "terminal",
                    "arguments": {"command": "echo " + HOSTILE},
                }
            ],
            "observation": {"results": [{"source_call_id": "1", "content": HOSTILE}]},
            "metrics": {"prompt_tokens": 10, "completion_tokens": 5, "extra": {"model_seconds": 1.5}},
        },
    ]
}


def build(path):
    tasks = [("alpha", "git"), ("beta", "files"), ("gamma", HOSTILE)]
    records = [
        record("alpha", category="git", info={"series": {"funds": [[0, 1], [1, 5], [2, 3]]}}),
        record("beta", verdict="failed", tests=[TestDetail(name=HOSTILE, status="failed", message=HOSTILE)]),
        record("gamma", verdict="sandbox_error", category=HOSTILE, message=HOSTILE),
    ]
    folder = make_run(path, records, make_plan(tasks), TRAJECTORY)
    verifier = folder.trial("beta", 1).path / "verifier"
    verifier.mkdir()
    (verifier / "test-stdout.txt").write_text(HOSTILE)
    return folder


def hacked(page):
    return page.evaluate("window.hacked === 1 || document.querySelectorAll('b, img').length > 0")


def test_the_report_in_a_browser(tmp_path):
    from hermes_benchmarks_browser import page as open_page

    (path,) = write_report(read_run(build(tmp_path / "run").path), ["html"])
    with open_page() as page:
        page.goto(path.as_uri())
        assert page.locator("#trials tbody tr").count() == 3
        page.fill("#search", "beta")
        assert page.locator("#trials tbody tr").count() == 1
        page.locator("#trials tbody tr button").click()
        page.wait_for_selector("#detail .step.agent")
        text = page.inner_text("#detail")
        for part in ("reward 0", "I will.", "call terminal", "Verifier", "test-stdout.txt", HOSTILE):
            assert part in text
        page.locator("#detail summary", has_text="reasoning").click()
        assert "Let me think." in page.inner_text("#detail .reasoning")
        page.locator("#close").click()
        page.fill("#search", "")
        page.select_option("#verdict", "passed")
        assert page.inner_text("#count") == "1 of 3 trials"
        page.locator("#trials tbody tr").first.click()
        page.wait_for_selector("#detail polyline")
        assert not hacked(page)
        assert page.problems == []


def test_a_link_to_a_trial_opens_it(tmp_path):
    from hermes_benchmarks_browser import page as open_page

    (path,) = write_report(read_run(build(tmp_path / "run").path), ["html"])
    with open_page() as page:
        page.goto(path.as_uri() + "#beta__1")
        page.wait_for_selector("#detail .step.agent")
        assert "beta__1" in page.inner_text("#detail h2")


def test_the_live_view_follows_the_run(tmp_path):
    from hermes_benchmarks_browser import page as open_page

    plan = make_plan(["alpha", "beta"])
    folder = make_run(tmp_path / "run", [record("alpha")], plan, TRAJECTORY)
    server = make_server(folder.path, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with open_page() as page:
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
            assert page.locator("#trials tbody tr").count() == 1
            late = folder.trial("beta", 1)
            late.begin()
            late.finish(record("beta", verdict="failed"))
            page.locator("#trials tbody tr").nth(1).wait_for()
            assert "1 / 2" in page.inner_text("#summary")
            page.locator("#trials tbody tr").first.click()
            page.wait_for_selector("#detail .step.agent")
            assert not hacked(page)
            own = [p for p in page.problems if not p.startswith("http://127.0.0.1")]
            assert own == []
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@pytest.mark.slow
def test_hundreds_of_trials_open(tmp_path):
    """How soon is printed by perf/evaluate.py."""
    from hermes_benchmarks_browser import page as open_page

    tasks = [f"task-{i:03d}" for i in range(100)]
    records = [
        record(t, n, "passed" if (i + n) % 3 else "failed") for i, t in enumerate(tasks) for n in range(1, 4)
    ]
    folder = make_run(tmp_path / "run", records, make_plan(tasks, attempts=3), TRAJECTORY)
    (path,) = write_report(read_run(folder.path), ["html"])
    with open_page() as page:
        page.goto(path.as_uri())
        assert page.inner_text("#count") == "300 of 300 trials"
