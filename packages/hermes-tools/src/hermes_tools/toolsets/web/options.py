"""Settings of the web tools."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ProviderName = Literal["brave", "tavily", "exa", "searxng", "duckduckgo"]
_KEYS: tuple[tuple[ProviderName, str], ...] = (
    ("brave", "BRAVE_API_KEY"),
    ("tavily", "TAVILY_API_KEY"),
    ("exa", "EXA_API_KEY"),
    ("searxng", "SEARXNG_URL"),
)


@dataclass(frozen=True, slots=True)
class WebOptions:
    """Settings of `web_search` and `web_extract`; give them to the session: `options=[WebOptions(…)]`.

    Attributes:
        provider: Who searches. None: the first of brave, tavily, exa, searxng that has its key or address, else
            duckduckgo, which needs none.
        keys: Key (for searxng: address) by provider; those missing here are read from the environment variables
            BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY and SEARXNG_URL.
        endpoints: Other addresses of providers, for a proxy or a test.
        allow_private: Whether pages may be read from private addresses (loopback, link-local, private networks, …).
        allow_hosts: `host:port` pairs that may be private all the same.
        respect_robots: Whether robots.txt is obeyed.
        user_agent: What the tools call themselves.
        page_seconds: Most seconds for one page, redirects included.
        max_bytes: Most bytes of a page; of a PDF four times as many.
        max_redirects: Most redirects followed.
    """

    provider: ProviderName | None = None
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_private: bool = False
    allow_hosts: frozenset[str] = frozenset()
    respect_robots: bool = True
    user_agent: str = "hermes-tools/0.1"
    page_seconds: float = 30.0
    max_bytes: int = 5 << 20
    max_redirects: int = 5

    def may_be_private(self, host: str, port: int) -> bool:
        """Whether a host may be on a private address."""
        return self.allow_private or f"{host}:{port}" in self.allow_hosts

    def key(self, provider: str) -> str | None:
        """The key, or address, of a provider."""
        variable = next((variable for name, variable in _KEYS if name == provider), None)
        return self.keys.get(provider) or (os.environ.get(variable) if variable else None)

    def chosen(self) -> ProviderName:
        """Who searches."""
        if self.provider is not None:
            return self.provider
        for name, _ in _KEYS:
            if self.key(name):
                return name
        return "duckduckgo"
