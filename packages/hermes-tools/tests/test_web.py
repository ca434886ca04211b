"""web_search and web_extract against a web server on this machine."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hermes_tools import ToolSession, call_tool
from hermes_tools.toolsets.web import WebOptions, fetch, readable
from hermes_tools.toolsets.web.addresses import is_public
from hermes_tools.toolsets.web.fetch import Page
from hermes_tools.toolsets.web.robots import Robots
from hermes_tools_calls import fail, succeed
from hermes_tools_site import Site, running_site
from hermes_tools_waiting import takes_less, until


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A slow machine meets none of the tools' own limits."""
    monkeypatch.setattr(fetch, "ROBOTS_SECONDS", 100.0)
    monkeypatch.setattr(readable, "HTML_SECONDS", 100.0)
    monkeypatch.setattr(readable, "PDF_SECONDS", 100.0)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site() as running:
        yield running


@pytest.fixture
def open_web(open_session, site):
    def open_one(**options) -> ToolSession:
        options = {"allow_hosts": frozenset({site.host}), "page_seconds": 100.0, **options}
        return open_session("web", "file", options=[WebOptions(**options)])

    return open_one


async def extract(session: ToolSession, *urls: str, **more):
    return (await succeed(session, "web_extract", urls=list(urls), **more))["results"]


async def test_the_main_text_of_pages(open_web, site):
    article, latin, plain, data, paper = await extract(
        open_web(),
        *(f"{site.url}/{name}" for name in ("to-article", "latin", "plain", "data.json", "paper.pdf")),
    )
    assert article["title"] == "On Otters" and "mammal that swims" in article["content"]
    assert "/holts)" in article["content"] and "| Sea otter | 30 kg |" in article["content"]
    assert "Buy now" not in article["content"] and "newsletters" not in article["content"]
    assert latin["title"] == "Café" and "Ein schöner Satz." in latin["content"]
    assert plain["content"] == "just text\n" and data["content"] == '{"a": 1}'
    assert paper["content"] == "[Page 1]\nHello from paper"
    assert site.headers["User-Agent"].startswith("hermes-tools/")


async def test_one_page_that_fails_does_not_harm_the_others(open_web, site):
    names = ("missing", "article", "empty", "image.png", "broken.pdf")
    found = await extract(open_web(), *(f"{site.url}/{name}" for name in names))
    assert "status 404" in found[0]["error"] and "error" not in found[1]
    assert (
        "no text" in found[2]["error"]
        and "vision_analyze" in found[3]["error"]
        and "PDF" in found[4]["error"]
    )


async def test_long_pages_are_cut_and_kept(open_web, site, workspace):
    (page,) = await extract(open_web(), f"{site.url}/long", char_limit=2_000)
    assert (
        page["content"].startswith("line 0\n")
        and page["content"].endswith("line 19999")
        and len(page["content"]) < 2_300
    )
    whole = (await workspace.read_bytes(page["full_content"])).decode()
    assert whole.split("\n") == [f"line {n}" for n in range(20_000)]


async def test_sizes_and_times_are_limited(open_web, site):
    (slow,) = await extract(open_web(page_seconds=1.0), f"{site.url}/slow")
    assert "within 1 seconds" in slow["error"]
    endless, loop = await extract(open_web(max_bytes=100_000), f"{site.url}/endless", f"{site.url}/loop")
    assert "longer than may be fetched" in endless["content"] and "more than 5 times" in loop["error"]


async def test_deeply_nested_pages_do_not_crash(open_web, site):
    (page,) = await extract(open_web(), f"{site.url}/nested")
    assert page.get("error") or "deep text" in page["content"]


async def test_a_page_that_takes_for_ever_to_read_is_given_up_alone(open_web, site, monkeypatch):
    monkeypatch.setattr(readable, "HTML_SECONDS", 0.0)
    slow, plain = await extract(open_web(), f"{site.url}/article", f"{site.url}/plain")
    assert "could not be read within" in slow["error"] and plain["content"] == "just text\n"


@pytest.mark.parametrize("charset", ["base64", "idna", "punycode", "nonsense", "utf-8"])
async def test_odd_character_sets_are_read_as_utf_8(charset):
    page = Page("http://a/", 200, "text/plain", charset, "smörgås".encode() + b"\xff", False)
    assert (await readable.readable(page)).text == "smörgås\ufffd"


async def test_robots_are_obeyed(open_web, site):
    urls = [f"{site.url}/private/page", f"{site.url}/private/open"]
    closed, opened = await extract(open_web(), *urls)
    assert "robots.txt" in closed["error"] and "mammal" in opened["content"]
    assert site.requests.count("GET /robots.txt") == 1 and "GET /private/page" not in site.requests
    (ignored,) = await extract(open_web(respect_robots=False), urls[0])
    assert "mammal" in ignored["content"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/a", False),
        ("/a/b", True),
        ("/a/b/c.gif", False),
        ("/x?y=1", False),
        ("/end", False),
        ("/ending", True),
        ("/%61", False),
        ("/robots.txt", True),
    ],
)
def test_rules_of_robots(path, allowed):
    text = (
        "Disallow: /nobody\nUser-Agent: other\nDisallow: /\nuser-agent: hermes-tools # us\nUser-agent: second\n"
        "Disallow: /a\nAllow: /a/b\nDisallow: /a/b*.gif$\nDisallow: /*?\nDisallow: /end$\nDisallow:\nnonsense"
    )
    assert Robots(text, "hermes-tools").allows(path) is allowed


def test_hostile_robots_take_linear_time():
    rules = "User-agent: *\n" + "\n".join("Disallow: /" + "*a" * 200 + "b" for _ in range(500))
    assert Robots(rules, "x").allows("/" + "a" * 2_000)
    assert takes_less(10, lambda: Robots(rules, "x").allows("/" + "a" * 2_000))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/article",
        "http://localhost:{port}/article",
        "http://127.1:{port}/article",
        "http://2130706433:{port}/article",
        "http://0x7f000001:{port}/article",
        "http://0:{port}/article",
        "http://[::1]:{port}/article",
        "http://[::ffff:127.0.0.1]:{port}/article",
        "http://user@127.0.0.1:{port}/article",
        "http://\u2460\u2461\u2466.0.0.1:{port}/article",
        "http://127\u30020\u30020\u30021:{port}/article",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://[fd00::1]/",
        "http://[64:ff9b::7f00:1]/",
    ],
)
async def test_private_addresses_are_refused(open_web, site, url):
    session = open_web(allow_hosts=frozenset())
    (page,) = await extract(session, url.format(port=site.port))
    assert "private address" in page["error"] or "canonical IPv4 address" in page["error"], page
    assert site.requests == []


async def test_a_redirect_to_a_private_address_is_refused(open_web, site):
    async with running_site() as hidden:
        target = f"{site.url}/redirect?to={hidden.url}/article"
        (page,) = await extract(open_web(), target)
        assert "private address" in page["error"] and hidden.requests == []
        (page,) = await extract(open_web(), f"{site.url}/redirect?to=file:///etc/passwd")
        assert "no web address" in page["error"]
        (page,) = await extract(open_web(allow_private=True), target)
        assert "mammal" in page["content"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::808:808", True),
        ("64:ff9b::a00:1", False),
        ("nonsense", False),
    ],
)
def test_which_addresses_are_public(address, public):
    assert is_public(address) is public


@pytest.mark.parametrize(
    "url",
    ["ftp://x.org/", "http://", "http://[", "javascript:alert(1)", "http://x:99999/", "data:text/html,x"],
)
async def test_what_is_no_web_address(open_web, url):
    (page,) = await extract(open_web(), url)
    assert "address" in page["error"]


async def test_too_many_or_no_addresses(open_web):
    assert "at most 5" in await fail(open_web(), "web_extract", urls=["a"] * 6)
    assert "at least 1" in await fail(open_web(), "web_extract", urls=[])


async def test_cancelling_leaves_nothing_open(open_web, site):
    session = open_web()
    task = asyncio.create_task(call_tool("web_extract", {"urls": f"{site.url}/slow"}, session))
    await until(lambda: "GET /slow" in site.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await session.close()


@pytest.mark.parametrize(
    ("provider", "path", "keys", "first"),
    [
        (
            "brave",
            "/brave",
            {"brave": "right"},
            {"title": "B0", "url": "https://b/0", "description": "a b & c"},
        ),
        ("tavily", "/tavily", {"tavily": "k"}, {"title": "T", "url": "https://t/", "description": "ct"}),
        ("exa", "/exa", {"exa": "k"}, {"title": "", "url": "https://e/", "description": "x" * 500}),
        ("searxng", "/sx", {"searxng": "unused"}, {"title": "S", "url": "https://s/", "description": "cs"}),
        (
            "duckduckgo",
            "/ddg",
            {},
            {"title": "The D page", "url": "https://d.org/a?b", "description": "About it & more"},
        ),
    ],
)
async def test_providers(open_web, site, monkeypatch, provider, path, keys, first):
    for variable in ("BRAVE_API_KEY", "TAVILY_API_KEY", "EXA_API_KEY", "SEARXNG_URL"):
        monkeypatch.delenv(variable, raising=False)
    session = open_web(keys=keys, endpoints={provider: site.url + path})
    result = await succeed(session, "web_search", query="otters & holts", limit=3)
    assert result["success"] is True
    assert result["data"]["web"][0] == {**first, "position": 1}
    assert len(result["data"]["web"]) <= 3
    if provider == "duckduckgo":
        assert [hit["url"] for hit in result["data"]["web"]] == ["https://d.org/a?b", "https://second.org/"]


async def test_the_provider_follows_from_what_is_configured(monkeypatch):
    for variable in ("BRAVE_API_KEY", "TAVILY_API_KEY", "EXA_API_KEY", "SEARXNG_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert WebOptions().chosen() == "duckduckgo"
    monkeypatch.setenv("EXA_API_KEY", "k")
    assert WebOptions().chosen() == "exa" and WebOptions().key("exa") == "k"
    assert WebOptions(keys={"brave": "b"}).chosen() == "brave"
    assert WebOptions(provider="duckduckgo").chosen() == "duckduckgo"


@pytest.mark.parametrize(
    ("path", "key", "part"),
    [
        ("/brave", "wrong", "the key is refused"),
        ("/busy", "k", "too many searches"),
        ("/garbage", "k", "JSON"),
        (":1/", "k", "cannot be reached"),
    ],
)
async def test_searches_that_fail_say_why(open_web, site, path, key, part):
    endpoint = "http://127.0.0.1:1/" if path == ":1/" else site.url + path
    session = open_web(provider="brave", keys={"brave": key}, endpoints={"brave": endpoint})
    assert part in await fail(session, "web_search", query="x")


async def test_a_provider_that_blocks_says_so(open_web, site):
    session = open_web(provider="duckduckgo", endpoints={"duckduckgo": f"{site.url}/ddg"})
    assert "refuses to answer" in await fail(session, "web_search", query="blocked")
