"""Which addresses are whose: what can only mean this machine, and by what others reach it."""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path
from typing import Final

_ROUTES: Final = Path("/proc/net/fib_trie")
_INTERFACES6: Final = Path("/proc/net/if_inet6")
#: An address of the machine in the kernel's table of routes: its line, and what is said of it in the next.
_LOCAL: Final = re.compile(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")
#: Addresses that are nobody's, far away: those that documents give as examples.
_ANYWHERE: Final = ("192.0.2.1", "2001:db8::1")
#: The scope of an IPv6 address that is good everywhere, in the kernel's own words.
_GLOBAL: Final = "00"


def is_loopback(host: str) -> bool:
    """Whether an address or host name can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether to listen there is to listen on every address of the machine."""
    return host in ("", "0.0.0.0", "::")  # noqa: S104


def own_addresses(wildcard: str) -> tuple[str, ...]:
    """The addresses by which others reach what listens on all of them, as the kernel has them now.

    The one by which it speaks to the world comes first: bridges of containers and virtual machines have addresses too,
    the same on every machine. Then IPv4 before IPv6.
    """
    found = addresses_in(_text(_ROUTES)) if wildcard != "::" else []
    found += addresses6_in(_text(_INTERFACES6)) if wildcard != "0.0.0.0" else []  # noqa: S104
    found = [address for address in found if not is_loopback(address)]
    likely = [outward for outward in map(_outward, _ANYWHERE) if outward in found]
    return tuple(dict.fromkeys((*likely, *found)))


def _outward(anywhere: str) -> str:
    """The own address that the kernel would use on the way there; empty where there is no way. Nothing is sent."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in anywhere else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((anywhere, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def addresses_in(routes: str) -> list[str]:
    """The machine's own IPv4 addresses in the kernel's table of routes."""
    return _LOCAL.findall(routes)


def addresses6_in(interfaces: str) -> list[str]:
    """The machine's own IPv6 addresses that are good beyond one link."""
    rows = [line.split() for line in interfaces.splitlines()]
    return [str(ipaddress.IPv6Address(int(row[0], 16))) for row in rows if len(row) >= 4 and row[3] == _GLOBAL]


def url(host: str, port: int, *, secure: bool) -> str:
    """An address and port as a URL."""
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:  # a kernel without IPv6, say
        return ""
