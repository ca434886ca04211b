"""The browser tools in a real, headless Chromium on pages of this machine."""

import asyncio
import json
import re
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hermes_tools import ToolSession, call_tool
from hermes_tools.toolsets.browser import BrowserOptions
from hermes_tools.toolsets.browser.host import BrowserHost
from hermes_tools.toolsets.browser.page import Browser
from hermes_tools.toolsets.web import WebOptions
from hermes_tools_calls import call, fail, succeed
from hermes_tools_site import Site, running_site
from hermes_tools_waiting import LIMITS, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
CHROMIUM = str(Path(__file__).parent / "support" / "hermes_tools_chromium.py")

PAGES = {
    "/form": """<title>Form</title><h1>Order</h1><p>Please fill in.</p><form action="/sent">
        <label>Name <input name="name" value="old"></label><label>Kind <select name="kind"><option>Small<option>Large</select></label>
        <label><input type="checkbox" name="ok"> Agree</label><button>Send</button></form>
        <a href="/next">Next page</a><img src="/image.png" alt="A picture" width="5">""",
    "/next": "<title>Next</title><p>You came far.</p>",
    "/frame": "<title>Outer</title><iframe src='/inner' title='in'></iframe>",
    "/inner": "<button onclick=\"this.textContent='Pressed'\">Press me</button>",
    "/dialogs": """<title>Dialogs</title><button onclick="document.title = confirm('Sure?') + '/' + prompt('Who?', 'me');
        alert('Done')">Ask</button>""",
    "/script": """<title>Script</title><script>console.log('hello', 5); console.error('bad');
        setTimeout(() => { throw new Error('thrown') }, 0); document.cookie = 'who=me'; localStorage.x = 'kept'</script>""",
    "/tall": "<title>Tall</title><div style='height:5000px'>top</div><button>Bottom</button>",
    "/popup": "<title>Opener</title><a href='/next' target='_blank'>Open</a>",
    "/covered": """<title>Covered</title><button>Below</button><div style='position:fixed;inset:0;background:#fff'>cover</div>""",
    "/get": "<title>Get</title><a href='/file' download>Fetch it</a>",
    "/leak": "<title>Leak</title><script>fetch('{hidden}/article').then(r => r.text()).then(t => document.title = t)"
    ".catch(() => document.title = 'refused')</script>",
    "/many": "<title>Many</title>" + "".join(f"<button>Button {n}</button>" for n in range(2_000)),
}


def _handlers(hidden: list[str]):
    def page(text: str):
        async def handle(request: web.Request) -> web.StreamResponse:
            body = text.replace("{hidden}", hidden[0]) if hidden else text
            return web.Response(text=body, content_type="text/html", charset="utf-8")

        return handle

    async def sent(request: web.Request) -> web.StreamResponse:
        return web.Response(
            text=f"<title>Sent</title><p>{sorted(request.query.items())}</p>", content_type="text/html"
        )

    async def file(request: web.Request) -> web.StreamResponse:
        headers = {"Content-Disposition": 'attachment; filename="../../re port.txt"'}
        return web.Response(body=b"downloaded\n", headers=headers)

    return {**{path: page(text) for path, text in PAGES.items()}, "/sent": sent, "/file": file}


@pytest.fixture
def hidden() -> list[str]:
    return []


@pytest.fixture
async def site(hidden) -> AsyncIterator[Site]:
    async with running_site(_handlers(hidden)) as running:
        yield running


@pytest.fixture
async def host() -> AsyncIterator[BrowserHost]:
    async with BrowserHost(BrowserOptions(executable=CHROMIUM)) as shared:
        yield shared


@pytest.fixture
def open_browser(open_session, site, host):
    def open_one(*tools: str, **options) -> ToolSession:
        settings = BrowserOptions(**{"host": host, "action_seconds": 60.0, "load_seconds": 60.0, **options})
        return open_session(
            "browser", *tools, options=[settings, WebOptions(allow_hosts=frozenset({site.host}))]
        )

    return open_one


def ref(snapshot: str, text: str) -> str:
    found = re.search(rf"{text}.*?\[ref=(\w+)\]", snapshot)
    assert found, snapshot
    return found[1]


async def shown(session: ToolSession, title: str, *results: dict[str, Any]) -> list[str]:
    """Wait until the page in front has this title; the events of earlier results, and those since."""
    events = [event for result in results for event in result.get("events") or ()]

    async def look() -> bool:
        page = await call(session, "browser_snapshot")  # an error while one page gives way to another
        events.extend(page.get("events") or ())
        return page.get("title") == title

    await until(look)
    return events


async def test_a_form_from_start_to_end(open_browser, site):
    session = open_browser()
    page = await succeed(session, "browser_navigate", url=f"{site.url}/form")
    assert (page["title"], page["status"], page["success"]) == ("Form", 200, True)
    assert "Please fill in" not in page["snapshot"] and 'heading "Order"' in page["snapshot"]
    full = (await succeed(session, "browser_snapshot", full=True))["snapshot"]
    assert "Please fill in." in full
    await succeed(session, "browser_type", ref="@" + ref(full, 'textbox "Name"'), text="Ann & Bo")
    await succeed(session, "browser_type", ref=ref(full, 'combobox "Kind"'), text="Large")
    await succeed(session, "browser_click", ref=ref(full, 'checkbox "Agree"'))
    sent = await succeed(session, "browser_click", ref=ref(full, 'button "Send"'))
    assert sent["title"] == "Sent" and sent["url"].startswith(
        f"{site.url}/sent?name=Ann+%26+Bo&kind=Large&ok=on"
    )
    assert (await succeed(session, "browser_back"))["title"] == "Form"
    again = (await succeed(session, "browser_snapshot"))["snapshot"]
    await succeed(session, "browser_type", ref=ref(again, 'textbox "Name"'), text="Cy")
    await succeed(session, "browser_press", key="Enter")
    await shown(session, "Sent")


async def test_frames(open_browser, site):
    session = open_browser()
    await succeed(session, "browser_navigate", url=f"{site.url}/frame")

    async def look():
        snapshot = (await succeed(session, "browser_snapshot"))["snapshot"]
        return "Press me" in snapshot and snapshot

    await succeed(session, "browser_click", ref=ref(await until(look), 'button "Press me"'))
    assert 'button "Pressed"' in (await succeed(session, "browser_snapshot"))["snapshot"]


async def test_dialogs_are_answered_and_told(open_browser, site):
    session = open_browser()
    page = await succeed(session, "browser_navigate", url=f"{site.url}/dialogs")
    clicked = await succeed(session, "browser_click", ref=ref(page["snapshot"], 'button "Ask"'))
    assert clicked["title"] == "true/me"
    assert [event.split(": ")[-1] for event in clicked["events"]] == ["Sure?", "Who?", "Done"]
    assert "events" not in await succeed(session, "browser_snapshot")


async def test_downloads_come_into_the_workspace(open_browser, site, tmp_path: Path):
    session = open_browser()
    page = await succeed(session, "browser_navigate", url=f"{site.url}/get")
    clicked = await succeed(session, "browser_click", ref=ref(page["snapshot"], 'link "Fetch it"'))

    async def told():
        return (await succeed(session, "browser_snapshot")).get("events")

    events = clicked.get("events") or await until(told)
    (saved,) = (tmp_path / "downloads").iterdir()
    assert saved.read_text() == "downloaded\n" and str(saved) in events[0]
    direct = await succeed(session, "browser_navigate", url=f"{site.url}/file")
    assert direct["title"] == "Get"


def set_options(session: ToolSession, **options: float) -> None:
    browser = session.state(Browser)
    browser.options = replace(browser.options, **options)


async def test_a_page_that_never_loads(open_browser, site):
    session = open_browser(load_seconds=1.0)
    assert "within 1 seconds" in await fail(session, "browser_navigate", url=f"{site.url}/slow")
    set_options(session, load_seconds=60.0)
    assert (await succeed(session, "browser_navigate", url=f"{site.url}/next"))["title"] == "Next"


async def test_a_script_that_never_ends(open_browser, site, monkeypatch):
    monkeypatch.setattr("hermes_tools.toolsets.browser.look.EVALUATE_SECONDS", 1.0)
    session = open_browser()
    await succeed(session, "browser_navigate", url=f"{site.url}/next")
    set_options(session, action_seconds=0.5)  # for a page that cannot be closed
    assert "did not end" in await fail(session, "browser_console", expression="while (true) {}")
    assert (await succeed(session, "browser_navigate", url=f"{site.url}/next"))["title"] == "Next"


async def test_console_and_expressions(open_browser, site):
    session = open_browser()
    await succeed(session, "browser_navigate", url=f"{site.url}/script")

    async def told():
        return len((await succeed(session, "browser_console"))["messages"]) >= 3

    await until(told)
    result = await succeed(session, "browser_console", expression="({a: [1, document.title]})", clear=True)
    assert result["result"] == {"a": [1, "Script"]}
    assert [(m["type"], m["text"]) for m in result["messages"][:2]] == [("log", "hello 5"), ("error", "bad")]
    assert result["messages"][2]["type"] == "exception" and "thrown" in result["messages"][2]["text"]
    assert (await succeed(session, "browser_console"))["messages"] == []
    assert "nope is not defined" in await fail(session, "browser_console", expression="nope()")


async def test_scrolling_pictures_and_new_pages(open_browser, site):
    session = open_browser()
    await succeed(session, "browser_navigate", url=f"{site.url}/tall")
    down = await succeed(session, "browser_scroll", direction="down")
    assert 300 < down["position"] < 800 < down["last_position"]
    assert (await succeed(session, "browser_scroll", direction="up"))["position"] == 0
    await succeed(session, "browser_navigate", url=f"{site.url}/form")
    images = (await succeed(session, "browser_get_images"))["images"]
    assert images == [{"src": f"{site.url}/image.png", "alt": "A picture", "width": 0, "height": 0}]
    page = await succeed(session, "browser_navigate", url=f"{site.url}/popup")
    opened = await succeed(session, "browser_click", ref=ref(page["snapshot"], 'link "Open"'))
    assert "new page" in (await shown(session, "Next", opened))[0]


async def test_what_the_page_looks_like(open_browser, site, workspace):
    session = open_browser(width=640, height=400)
    await succeed(session, "browser_navigate", url=f"{site.url}/form")
    for annotate in (False, True):
        output = await call_tool("browser_vision", {"question": "?", "annotate": annotate}, session)
        data = await workspace.read_bytes(json.loads(output.text)["screenshot_path"])
        assert struct.unpack(">II", data[16:24]) == (640, 400)
        assert output.parts[1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert (
        "hermes-marks"
        not in (await succeed(session, "browser_console", expression="document.body.outerHTML"))["result"]
    )


def no_such_host(monkeypatch) -> None:
    """Names under .invalid do not exist, whatever this machine's name servers say, and when."""
    resolve = socket.getaddrinfo

    def look_up(host, *more, **options):
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


async def test_errors_say_what_to_do(open_browser, site, monkeypatch):
    no_such_host(monkeypatch)
    session = open_browser()
    assert "new browser_snapshot" in await fail(session, "browser_click", ref="e99")
    assert "no element reference" in await fail(session, "browser_click", ref="#id")
    assert "no page to go back" in await fail(session, "browser_back")
    page = await succeed(session, "browser_navigate", url=f"{site.url}/covered")
    front = await session.state(Browser).page()
    for seconds in LIMITS:
        front.set_default_timeout(seconds * 1000)
        message = await fail(session, "browser_click", ref=ref(page["snapshot"], 'button "Below"'))
        if "intercepts" in message:
            break
    assert "intercepts" in message
    front.set_default_timeout(60_000)
    assert "Nokey" in await fail(session, "browser_press", key="Nokey")
    for url in ("http://no-such-host.invalid/", "https://no-such-host.invalid/"):
        assert "no-such-host.invalid cannot be reached" in await fail(session, "browser_navigate", url=url)
    assert "private address" in await fail(session, "browser_navigate", url="https://10.0.0.1/")
    for url in ("file:///etc/passwd", "chrome://version", "javascript:alert(1)"):
        message = await fail(session, "browser_navigate", url=url)
        assert "cannot be opened" in message or "could not be opened" in message


async def test_private_addresses_cannot_be_reached(open_browser, site, hidden):
    async with running_site() as other:
        hidden.append(other.url)
        session = open_browser()
        for url in (
            f"{other.url}/article",
            f"http://localhost:{other.port}/article",
            f"{site.url}/redirect?to={other.url}/",
        ):
            assert "private address" in await fail(session, "browser_navigate", url=url)
        assert (await succeed(session, "browser_navigate", url=f"{site.url}/leak"))["success"]
        await shown(session, "refused")
        assert other.requests == []


async def test_pages_over_tls_and_web_sockets(open_session, tmp_path: Path):
    """Both go through the proxy as tunnels."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
    ]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    async with running_site({"/socket": _echo, "/page": _socket_page}, tls=tls) as site:
        session = open_session(
            "browser",
            options=[
                BrowserOptions(executable=CHROMIUM, args=("--ignore-certificate-errors",)),
                WebOptions(allow_hosts=frozenset({site.host})),
            ],
        )
        await succeed(session, "browser_navigate", url=f"https://{site.host}/page")
        await shown(session, "echo: hello")


async def test_a_page_given_up_because_a_container_started_is_opened_again(open_browser, site, monkeypatch):
    from playwright.async_api import Error

    session = open_browser()
    front = await session.state(Browser).page()
    load, changes = front.goto, iter((True, True, False))

    async def goto(url, **options):
        if next(changes):
            raise Error(f"Page.goto: net::ERR_NETWORK_CHANGED at {url}")
        return await load(url, **options)

    monkeypatch.setattr(front, "goto", goto)
    assert (await succeed(session, "browser_navigate", url=f"{site.url}/next"))["title"] == "Next"


async def _echo(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(f"echo: {message.data}")
    return socket


async def _socket_page(request: web.Request) -> web.StreamResponse:
    script = "const s = new WebSocket(`wss://${location.host}/socket`); s.onopen = () => s.send('hello');"
    page = f"<title>wait</title><script>{script} s.onmessage = m => document.title = m.data</script>"
    return web.Response(text=page, content_type="text/html")


async def test_sessions_share_a_browser_but_nothing_else(open_browser, site):
    one, two = open_browser(), open_browser()
    script = "document.cookie + localStorage.x"
    await succeed(one, "browser_navigate", url=f"{site.url}/script")
    await succeed(two, "browser_navigate", url=f"{site.url}/next")
    assert (await succeed(one, "browser_console", expression=script))["result"] == "who=mekept"
    assert (await succeed(two, "browser_console", expression=script))["result"] == "undefined"
    await one.close()
    assert (await succeed(two, "browser_snapshot"))["title"] == "Next"


async def test_a_browser_that_died_is_started_again(open_browser, site, host):
    session = open_browser()
    await succeed(session, "browser_navigate", url=f"{site.url}/next")
    await (await host.browser()).close()
    assert (await succeed(session, "browser_navigate", url=f"{site.url}/form"))["title"] == "Form"


async def test_a_session_ends_its_own_browser(open_session, site):
    options = [BrowserOptions(executable=CHROMIUM), WebOptions(allow_private=True)]
    session = open_session("browser", options=options)
    await succeed(session, "browser_navigate", url=f"{site.url}/next")
    browser = await session.state(Browser)._host.browser()
    assert browser.is_connected()
    await session.close()
    assert not browser.is_connected()


async def test_cancelling_a_start_leaves_nothing(open_session):
    session = open_session("browser")
    task = asyncio.create_task(call_tool("browser_snapshot", {}, session))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await session.close()


async def test_a_browser_that_cannot_start(open_session):
    session = open_session("browser", options=[BrowserOptions(executable="/bin/false")])
    assert "could not be started" in await fail(session, "browser_snapshot")


async def test_a_page_of_thousands_of_elements(open_browser, site):
    page = await succeed(open_browser(), "browser_navigate", url=f"{site.url}/many")
    assert len(page["snapshot"]) < 21_000 and "characters more" in page["snapshot"]
