"""Which addresses a redirect may lead to: public ones, so that no server sends us into our own network."""

from __future__ import annotations

import ipaddress
import socket

from services.poller.errors import FetchRefusedError, FetchUnreachableError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
# What IPv6 gives to the open network; all else is reserved, or was once for a way into IPv4 (`::127.0.0.1`).
_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public(address: str) -> bool:
    """Whether an address belongs to the open network; what is no address does not."""
    try:
        return all(each.is_global and not each.is_multicast for each in _meant(ipaddress.ip_address(address)))
    except ValueError:
        return False


def _meant(address: _Address) -> list[_Address]:
    """The address, and those of IPv4 that an IPv6 address may stand for."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if any(address in network for network in _NAT64):
        return [ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)]
    if address not in _UNICAST:
        return [ipaddress.IPv6Address("::")]
    meant: list[_Address] = [address]
    if address.sixtofour is not None:
        meant.append(address.sixtofour)
    if address.teredo is not None:
        meant.extend(address.teredo)
    return meant


def check_public_host(host: str, port: int) -> None:
    """FetchRefusedError if the name stands for any address that is not public."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchUnreachableError(f"it redirects to {host!r}, whose address is not known: {error}") from error
    for *_, address in found:
        check_public(str(address[0]), host)


def check_public(address: str, host: str) -> None:
    """FetchRefusedError for an address that is not public."""
    if not is_public(address.partition("%")[0]):
        raise FetchRefusedError(
            f"it redirects to {host} ({address}), which lies in a private network: if that is meant, put the address "
            "into the source, or set ODF_POLLER_ALLOW_PRIVATE_REDIRECTS"
        )
