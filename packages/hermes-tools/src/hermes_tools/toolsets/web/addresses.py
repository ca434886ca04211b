"""Which addresses may be fetched.

A page, or a name server, can point anywhere: at this machine's services, at a cloud's metadata address, into a private
network (server-side request forgery). So the address that is connected to is checked, after the name was resolved, for
every redirect anew; checking names or addresses before resolving would leave a gap.
"""

import ipaddress
import socket
from typing import Any

from hermes_tools.errors import ToolError

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class RefusedAddress(OSError):
    """A name led to an address that is not public."""


def is_public(text: str) -> bool:
    """Whether an address belongs to the public internet, also one hidden inside an IPv6 address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not is_public(str(inner)):
            return False
    return address.is_global and not address.is_multicast and not address.is_unspecified


def check_literal(host: str) -> None:
    """Refuse a host that is written as an address which is not public.

    Raises:
        ToolError: It says so.
    """
    try:
        ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return
    if not is_public(host.strip("[]")):
        raise refusal(host)


def refusal(host: str) -> ToolError:
    """The error for a host that is not on the public internet."""
    return ToolError(f"{host} is a private address, which may not be fetched.")


def public_resolver() -> Any:
    """A resolver for aiohttp that gives public addresses only."""
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.resolver import ThreadedResolver

    class PublicResolver(AbstractResolver):
        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            found = await self._inner.resolve(host, port, family)
            if not all(is_public(item["host"]) for item in found):
                raise RefusedAddress(f"{host} leads to a private address")
            return found

        async def close(self) -> None:
            await self._inner.close()

    return PublicResolver()
