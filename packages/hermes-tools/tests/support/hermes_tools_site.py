"""A small web site, and search providers, on this machine."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

ARTICLE = """<html><head><title>On Otters</title></head><body>
<nav><a href="/">Home</a> <a href="/shop">Buy now</a></nav>
<article><h1>On Otters</h1>
<p>The otter is a mammal that swims very well and eats fish, as everybody who lives near a river knows from watching.</p>
<p>It builds its holt in the bank. See <a href="/holts">holts</a> for more on that subject, which is a large one.</p>
<table><tr><th>Kind</th><th>Weight</th></tr><tr><td>Sea otter</td><td>30 kg</td></tr></table>
</article><footer>Copyright, cookies, newsletters</footer></body></html>"""
ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open$\nUser-agent: bad\nDisallow: /"


def pdf(text: str) -> bytes:
    """A PDF of one page that shows a text."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start)


@dataclass
class Site:
    """A running site.

    Attributes:
        port: Its port.
        requests: What was asked of it: method and path with query.
        bodies: JSON and form bodies that came in.
        headers: Headers of the last request.
    """

    port: int = 0
    requests: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _pages(site: Site) -> dict[str, Handler]:
    def answer(
        body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str
    ) -> Handler:
        data = body.encode() if isinstance(body, str) else body

        async def handle(request: web.Request) -> web.StreamResponse:
            return web.Response(body=data, status=status, headers={"Content-Type": kind, **headers})

        return handle

    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        except ConnectionError:
            return response

    def to(target: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            raise web.HTTPFound(request.query.get("to", target))

        return handle

    latin = (
        "<html><head><meta charset='iso-8859-1'><title>Caf\u00e9</title></head><body><p>"
        + "Ein sch\u00f6ner Satz. " * 9
    )
    return {
        "/article": answer(ARTICLE),
        "/latin": answer(latin.encode("latin-1"), "text/html"),
        "/plain": answer("just text\n", "text/plain"),
        "/data.json": answer('{"a": 1}', "application/json"),
        "/paper.pdf": answer(pdf("Hello from paper"), "application/pdf"),
        "/broken.pdf": answer(b"%PDF-1.4 nonsense", "application/pdf"),
        "/image.png": answer(b"\x89PNG\r\n\x1a\n" + bytes(50), "image/png"),
        "/empty": answer("<html><body><script>1</script></body></html>"),
        "/missing": answer("no", status=404),
        "/private/page": answer(ARTICLE),
        "/private/open": answer(ARTICLE),
        "/long": answer("\n".join(f"line {n}" for n in range(20_000)), "text/plain"),
        "/nested": answer("<div>" * 20_000 + "deep text here" + "</div>" * 20_000),
        "/robots.txt": answer(ROBOTS, "text/plain"),
        "/favicon.ico": answer(
            b"", status=204
        ),  # a browser asks for it, and would complain on a page's console
        "/loop": to("/loop"),
        "/to-article": to("/article"),
        "/redirect": to("/article"),
        "/slow": slow,
        "/endless": endless,
    }


def _providers(site: Site) -> dict[str, Handler]:
    async def brave(request: web.Request) -> web.StreamResponse:
        if request.headers["X-Subscription-Token"] != "right":
            return web.Response(status=401, text="bad key")
        results = [
            {"title": f"B{n}", "url": f"https://b/{n}", "description": "a <strong>b</strong> &amp; c"}
            for n in range(9)
        ]
        return web.json_response({"web": {"results": results}})

    async def tavily(request: web.Request) -> web.StreamResponse:
        site.bodies.append(await request.json())
        return web.json_response(
            {"results": [{"title": "T", "url": "https://t/", "content": "ct", "score": 1}, "odd"]}
        )

    async def exa(request: web.Request) -> web.StreamResponse:
        site.bodies.append(await request.json())
        return web.json_response({"results": [{"title": None, "url": "https://e/", "text": "x" * 900}]})

    async def searxng(request: web.Request) -> web.StreamResponse:
        return web.json_response({"results": [{"title": "S", "url": "https://s/", "content": "cs"}]})

    async def duckduckgo(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if form["q"] == "blocked":
            return web.Response(status=202, text="<div class='anomaly-modal'>", content_type="text/html")
        body = """<div class="result"><a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fd.org%2Fa%3Fb&amp;rut=1">
        The <b>D</b> page</a><a class="result__snippet" href="x">About <b>it</b> &amp; more</a></div>
        <a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Ad</a>
        <a class="result__a" href="https://second.org/">Second</a>"""
        return web.Response(text=body, content_type="text/html")

    async def busy(request: web.Request) -> web.StreamResponse:
        return web.Response(status=429, text="slow down")

    async def garbage(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>")

    found = {"/brave": brave, "/tavily": tavily, "/exa": exa, "/sx/search": searxng, "/ddg": duckduckgo}
    return {**found, "/busy": busy, "/garbage": garbage}


@asynccontextmanager
async def running_site(
    more: dict[str, Handler] | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """The site, while it runs."""
    site = Site()
    pages = {**_pages(site), **_providers(site), **(more or {})}

    async def serve(request: web.Request) -> web.StreamResponse:
        site.requests.append(f"{request.method} {request.path_qs}")
        site.headers = dict(request.headers)
        if request.path not in pages:
            raise web.HTTPNotFound
        return await pages[request.path](request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await server.start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()
