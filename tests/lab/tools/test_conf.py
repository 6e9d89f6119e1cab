"""The lab's reader of drbd.conf, held to what drbdadm 9.22 was recorded to say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.lab.tools.conf.configuration import MAIN_FILE, ConfigInvalid, Configuration

DATA = Path(__file__).parents[1] / "recordings" / "data"
MAIN = b'include "drbd.d/*.res";\n'
TESTED, EXCLUDED = "/etc/drbd.d/pvc-1.res_tmp", "/etc/drbd.d/pvc-1.res"

MINIMAL = """resource "r" {
  on a { node-id 0; address ipv4 10.0.0.1:7000; volume 0 { device minor 1; disk /dev/vg0/r; meta-disk internal; } }
  on b { node-id 1; address ipv4 10.0.0.2:7000; volume 0 { device minor 1; disk none; } }
}
"""


def read(text: str, **more: str) -> Configuration:
    files = {MAIN_FILE: MAIN, "/etc/drbd.d/r.res": text.encode()}
    files |= {f"/etc/drbd.d/{name}.res": other.encode() for name, other in more.items()}
    return Configuration.of(files)


def complaint(files: dict[str, bytes], **more: str) -> str:
    try:
        Configuration.of(files, **more)
    except ConfigInvalid as error:
        return str(error)
    return ""


def recorded_validations() -> list[tuple[str, str, str]]:
    steps = json.loads((DATA / "bad_config.json").read_text())["steps"]
    found, text = [], ""
    for step in steps:
        if step["kind"] == "file" and step["path"] == TESTED:
            text = step["text"]
        elif step["kind"] == "command" and "sh-nop" in step["command"]:
            found.append((step["note"], text, step["output"]))
    return found


@pytest.mark.parametrize(("note", "text", "said"), recorded_validations(), ids=lambda value: str(value)[:24])
def test_a_recorded_configuration_is_judged_in_the_recorded_words(note: str, text: str, said: str) -> None:
    assert complaint({MAIN_FILE: MAIN, TESTED: text.encode()}, test=TESTED, exclude=EXCLUDED) == said, note


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("options { quorum 33; }", "for quorum. Value is too big."),
        ("options { quorum 0; }", "for quorum. Value is too small."),
        ("options { quorum many; }", "for quorum. Value is not valid."),
        ("options { auto-promote maybe; }", "for auto-promote. Value is not 'yes' or 'no'."),
        ("net { ping-int x; }", "for ping-int. Value is not a number."),
        ("net { protocol D; }", "for protocol. Value is not valid.\nAllowed values are: A | B | C"),
        ("net { ko-count 500; protocol D; }", "for ko-count. Value is too big.\n/etc/drbd.d/r.res:2: Parse error"),
        ("connection { host a; host z; }", 'a hostname ("z") is given'),
        ("on c { node-id 4; }", "volume 0 missing (present on a)"),
        ("net { no-such-thing 1; }", "but got 'no-such-thing'"),
        ("disk { c-plan-ahead 301; }", "for c-plan-ahead. Value is too big."),
        ("nonsense;", "but got 'nonsense'"),
        ("options { quorum 2 }", "';' expected"),
        ("options { quorum 2;", "but got 'on'"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(line: str, said: str) -> None:
    with pytest.raises(ConfigInvalid) as error:
        read(MINIMAL.replace("{\n", "{\n" + line + "\n", 1))
    assert said in str(error.value)
    assert str(error.value).startswith("/etc/drbd.d/r.res:")


@pytest.mark.parametrize("line", ["net { ping-int 3; }", "options { quorum majority; }", "disk { resync-rate 4M; }"])
def test_a_right_line_is_taken(line: str) -> None:
    assert read(MINIMAL.replace("{\n", "{\n" + line + "\n", 1)).part("r", "a") is not None


def test_two_resources_may_not_share_a_minor_on_one_host() -> None:
    other = MINIMAL.replace('"r"', '"s"').replace(":7000", ":7001").replace("/dev/vg0/r", "/dev/vg0/s")
    with pytest.raises(ConfigInvalid, match="conflicting use of device-minor 'device-minor:a:1'"):
        read(MINIMAL, s=other)


def test_two_hosts_are_connected_without_a_connection_section() -> None:
    part = read(MINIMAL).part("r", "a")
    assert part is not None
    assert [(peer.name, peer.node_id, str(peer.remote)) for peer in part.peers] == [("b", 1, "ipv4 10.0.0.2:7000")]
    assert part.peers[0].diskless_volumes == {0}


def test_what_a_connection_says_counts_before_what_the_resource_says() -> None:
    text = MINIMAL.replace(
        "{\n",
        "{\n net { ping-int 3; timeout 20; }\n"
        " connection { host a; host b; net { ping-int 5; allow-remote-read no; } }\n",
        1,
    )
    part = read(text).part("r", "a")
    assert part is not None
    assert dict(part.peers[0].net) == {"timeout": "20", "ping-int": "5", "allow-remote-read": "no"}


def test_common_options_hold_where_a_resource_says_nothing() -> None:
    text = "common { options { auto-promote no; quorum majority; } }\n" + MINIMAL.replace(
        "{\n", "{\n options { quorum 2; }\n", 1
    )
    part = read(text).part("r", "a")
    assert part is not None
    assert dict(part.options) == {"auto-promote": "no", "quorum": "2"}


def test_a_mesh_connects_every_pair() -> None:
    third = "on c { node-id 2; address ipv4 10.0.0.3:7000; volume 0 { device minor 1; disk /dev/x; } }"
    text = MINIMAL.replace("{\n", f"{{\n{third}\nconnection-mesh {{ hosts a b c; }}\n", 1)
    for name, peers in (("a", ["b", "c"]), ("b", ["a", "c"]), ("c", ["a", "b"])):
        part = read(text).part("r", name)
        assert part is not None
        assert [peer.name for peer in part.peers] == peers


def test_a_resource_without_this_host_has_no_part_for_it() -> None:
    assert read(MINIMAL).part("r", "elsewhere") is None
