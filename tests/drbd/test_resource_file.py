"""The .res file: what is in it, and that nothing in a config can make it mean something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.meta import NodeName, VolumeName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import Address, DrbdConfig, ReplicaType, SharedSecretAlgorithm
from quorate.api.struct import replace
from quorate.drbd.errors import UnwritableConfig
from quorate.drbd.resource_file import missing, render
from tests.drbd.layouts import ACCESS, DISKFUL, TIE_BREAKER, VOLUME, Layout, Member, config_of, node

TWO_AND_A_TIE_BREAKER: Layout = (Member(DISKFUL), Member(DISKFUL), Member(TIE_BREAKER))

EXPECTED = """\
global {
  usage-count no;
}
resource "pvc-1" {
  options {
    auto-promote no;
    quorum majority;
    quorum-minimum-redundancy 1;
    on-no-quorum suspend-io;
    on-no-data-accessible suspend-io;
    on-suspended-primary-outdated force-secondary;
  }
  net {
    protocol C;
    cram-hmac-alg sha256;
    shared-secret "s3cret";
    rr-conflict retry-connect;
    allow-two-primaries no;
    verify-alg crc32c;
    ping-int 3;
    ping-timeout 10;
    connect-int 3;
    timeout 20;
  }
  on "node-0.example" {
    node-id 0;
    address ipv4 10.0.0.1:7000;
    volume 0 {
      device minor 1000;
      disk "/dev/vg0/pvc-1-0";
      meta-disk internal;
    }
  }
  on "node-1.example" {
    node-id 1;
    address ipv4 10.0.0.2:7001;
    volume 0 {
      device minor 1000;
      disk "/dev/of-another-node";
      meta-disk internal;
    }
  }
  on "node-2.example" {
    node-id 2;
    address ipv4 10.0.0.3:7002;
    volume 0 {
      device minor 1000;
      disk none;
    }
  }
  connection {
    host "node-0.example" address ipv4 10.0.0.1:7000;
    host "node-1.example" address ipv4 10.0.0.2:7001;
  }
  connection {
    host "node-0.example" address ipv4 10.0.0.1:7000;
    host "node-2.example" address ipv4 10.0.0.3:7002;
    net {
      allow-remote-read no;
    }
  }
}
"""


def rendered(layout: Layout, node_id: int, **changes: object) -> str:
    return render(VOLUME, node(node_id), config_of(layout, node_id, **changes))


def test_a_whole_file_reads_like_the_recorded_ones() -> None:
    assert rendered((*TWO_AND_A_TIE_BREAKER[:2], Member(TIE_BREAKER, hidden=True)), 0) == EXPECTED


@pytest.mark.parametrize(
    ("own", "quorum"),
    [
        (Member(DISKFUL), "majority"),
        (Member(DISKFUL, hidden=True), "32"),
        (Member(TIE_BREAKER), "32"),
        (Member(TIE_BREAKER, hidden=True), "32"),
        (Member(ACCESS), "32"),
        (Member(ACCESS, hidden=True), "32"),
    ],
    ids=str,
)
def test_only_a_shown_diskful_member_counts_votes_itself(own: Member, quorum: str) -> None:
    assert f"\n    quorum {quorum};\n" in rendered((own, Member(DISKFUL)), 0)


def test_the_number_in_the_config_is_only_for_people() -> None:
    assert rendered(TWO_AND_A_TIE_BREAKER, 0, quorum=2) == rendered(TWO_AND_A_TIE_BREAKER, 0)


def test_a_redundancy_of_nothing_is_written_as_off() -> None:
    for nothing in (None, 0):
        text = rendered(TWO_AND_A_TIE_BREAKER, 0, quorum_minimum_redundancy=nothing)
        assert "quorum-minimum-redundancy off;" in text


def test_members_without_a_disk_do_not_hide_anybody_and_are_not_linked_to_each_other() -> None:
    layout = (Member(DISKFUL), Member(DISKFUL, hidden=True), Member(TIE_BREAKER), Member(ACCESS, hidden=True))
    text = rendered(layout, 2)
    assert "allow-remote-read" not in text
    assert node(3) not in text
    assert text.count("connection {") == 2
    assert rendered(layout, 0).count("allow-remote-read no;") == 2


def test_a_disk_that_a_diskless_member_still_has_is_not_used() -> None:
    assert "/dev/vg0/old" not in rendered(TWO_AND_A_TIE_BREAKER, 2, disk="/dev/vg0/old")


def test_the_order_of_the_peers_does_not_matter() -> None:
    config = config_of(TWO_AND_A_TIE_BREAKER, 0)
    turned = replace(config, peers=config.peers[::-1])
    assert render(VOLUME, node(0), turned) == render(VOLUME, node(0), config)


def test_two_primaries_are_allowed_only_when_the_config_says_so() -> None:
    assert "allow-two-primaries no;" in rendered(TWO_AND_A_TIE_BREAKER, 0)
    assert "allow-two-primaries yes;" in rendered(TWO_AND_A_TIE_BREAKER, 0, allow_two_primaries=True)


@pytest.mark.parametrize(
    ("field", "name", "absent"),
    [
        ("node_id", "nodeId", None),
        ("type", "type", None),
        ("address", "address", None),
        ("peers_initialized", "peers", False),
        ("device_minor", "deviceMinor", None),
        ("disk", "disk", None),
        ("shared_secret", "sharedSecret", None),
        ("shared_secret_alg", "sharedSecretAlg", None),
    ],
)
def test_a_field_that_is_not_there_is_named_and_nothing_is_written(field: str, name: str, absent: object) -> None:
    config = config_of(TWO_AND_A_TIE_BREAKER, 0, **{field: absent})
    assert missing(config) == (name,)
    with pytest.raises(UnwritableConfig, match=name):
        render(VOLUME, node(0), config)


def test_an_empty_config_lacks_everything_but_a_disk() -> None:
    assert missing(DrbdConfig()) == (
        "nodeId",
        "type",
        "address",
        "peers",
        "deviceMinor",
        "sharedSecret",
        "sharedSecretAlg",
    )


def test_one_without_peers_is_complete_once_that_is_meant() -> None:
    assert missing(config_of((Member(DISKFUL),), 0)) == ()
    assert "connection" not in rendered((Member(DISKFUL),), 0)


@pytest.mark.parametrize("secret", ["", "x" * 64, "é", "line\nbreak", "null\0", "\x1b[0m"])
def test_a_secret_that_cannot_be_written_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(UnwritableConfig, match="sharedSecret cannot be written") as refusal:
        rendered(TWO_AND_A_TIE_BREAKER, 0, shared_secret=Secret(secret))
    assert not secret or secret not in str(refusal.value)


# Nothing can break out of its token: read as drbdadm's scanner reads, the file always has the same tokens.


def tokens(text: str) -> list[str]:
    """Words, punctuation and quoted strings; a string ends at its quote, and never goes over a line's end."""
    found, position = [], 0
    while position < len(text):
        start, character = position, text[position]
        if character.isspace():
            position += 1
        elif character in "{};":
            position += 1
            found.append(character)
        elif character == '"':
            position += 1
            while text[position] != '"':
                assert text[position] != "\n"
                position += 2 if text[position] == "\\" else 1
            position += 1
            found.append('"…"')
        else:
            while position < len(text) and not text[position].isspace() and text[position] not in '{};"':
                position += 1
            found.append(text[start:position])
    return found


texts = st.text(max_size=70)


@given(volume=texts, node_name=texts, peer_name=texts, disk=texts, secret=texts)
def test_no_text_in_a_config_can_end_its_own_token(
    volume: str, node_name: str, peer_name: str, disk: str, secret: str
) -> None:
    config = config_of(TWO_AND_A_TIE_BREAKER, 0, disk=disk, shared_secret=Secret(secret))
    peers = (replace(config.peers[0], node_name=NodeName(peer_name)), config.peers[1])
    try:
        text = render(VolumeName(volume), NodeName(node_name), replace(config, peers=peers))
    except UnwritableConfig:
        return
    assert tokens(text) == tokens(rendered(TWO_AND_A_TIE_BREAKER, 0))


@given(ipv4=texts)
def test_an_address_is_written_only_if_it_can_be_one(ipv4: str) -> None:
    try:
        text = rendered(TWO_AND_A_TIE_BREAKER, 0, address=Address(ipv4=ipv4, port=7000))
    except UnwritableConfig:
        return
    assert set(ipv4) <= set("0123456789.")
    assert f"address ipv4 {ipv4}:7000;" in text


def test_every_algorithm_and_type_has_a_spelling() -> None:
    for algorithm in SharedSecretAlgorithm:
        assert f"cram-hmac-alg {algorithm.value};" in rendered(TWO_AND_A_TIE_BREAKER, 0, shared_secret_alg=algorithm)
    assert set(ReplicaType) == {DISKFUL, ACCESS, TIE_BREAKER}
