"""Which addresses are this machine's, read from what its kernel says."""

from __future__ import annotations

import pytest

from quorate.server import addresses
from quorate.server.addresses import addresses6_in, addresses_in, own_addresses

ROUTES = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.0.0/24 2 0 2
        |-- 10.0.0.0
           /24 link UNICAST
        |-- 10.0.0.7
           /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
"""
INTERFACES = """fe80000000000000004200fffe110002 02 40 20 80     eth0
fd000000000000000000000000000002 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
"""


def test_of_routes_only_the_machines_own_addresses_are_taken() -> None:
    assert addresses_in(ROUTES) == ["10.0.0.7", "127.0.0.1"]


def test_of_ipv6_only_what_is_good_beyond_one_link() -> None:
    assert addresses6_in(INTERFACES) == ["fd00::2"]


def test_whoever_listens_on_one_family_is_reached_by_no_other() -> None:
    assert not [address for address in own_addresses("0.0.0.0") if ":" in address]
    assert not [address for address in own_addresses("::") if "." in address]
    assert set(own_addresses("")) == {*own_addresses("0.0.0.0"), *own_addresses("::")}


def test_a_bridge_of_containers_is_not_where_others_look_first(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = "".join(f"  |-- {address}\n     /32 host LOCAL\n" for address in ("172.17.0.1", "192.168.1.5"))
    monkeypatch.setattr(addresses, "_text", lambda path: routes if path == addresses._ROUTES else "")
    for outward, first in (("192.168.1.5", "192.168.1.5"), ("172.17.0.1", "172.17.0.1"), ("", "172.17.0.1")):
        monkeypatch.setattr(addresses, "_outward", lambda _, outward=outward: outward)
        found = own_addresses("0.0.0.0")
        assert found[0] == first
        assert sorted(found) == ["172.17.0.1", "192.168.1.5"]
