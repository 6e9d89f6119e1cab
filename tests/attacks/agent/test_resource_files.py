"""Files of any config before the real drbdadm: it takes from each exactly what was meant, or none is written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.meta import NodeName, VolumeName
from quorate.api.scalars import ReplicaName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import Address, DrbdConfig, Peer, ReplicaType, SharedSecretAlgorithm
from quorate.api.struct import replace
from quorate.drbd.errors import UnwritableConfig
from quorate.drbd.resource_file import linked_peers, render
from tests.support.drbd_utils import Drbdadm, drbdadm

#: Resources that one call of drbdadm is shown: most of its time goes into starting it.
BATCH = 25
OWN = "own-host"

#: What a file could be broken with, and anything else that can be printed; now and then what cannot.
_TRICKS = st.sampled_from(['"', "\\", '\\"', ";", "}", "{", "#", "'", "$(id)", "`", "%s%n", " ", "\t", "//", "/*", "é"])
_PRINTED = st.characters(min_codepoint=32, max_codepoint=126)
_TEXT = st.lists(st.one_of(_PRINTED, _PRINTED, _TRICKS), min_size=1, max_size=24).map("".join)
_PORTS = st.integers(1025, 65535)


@st.composite
def configs(draw: st.DrawFn) -> DrbdConfig:
    """One member's config. Numbers and names that must not collide in a file do not; all else is as it comes."""
    count = draw(st.integers(0, 6))
    kinds = draw(st.lists(st.sampled_from(list(ReplicaType)), min_size=count + 1, max_size=count + 1))
    ids = draw(st.permutations(range(8)))
    names = draw(st.lists(_TEXT.filter(lambda name: name != OWN), min_size=count, max_size=count, unique=True))
    peers = tuple(
        Peer(
            name=ReplicaName(f"v-{node_id}"),
            node_name=NodeName(name),
            node_id=node_id,
            type=kind,
            address=Address(ipv4=f"10.1.{node_id}.{draw(st.integers(1, 254))}", port=draw(_PORTS)),
            hidden=draw(st.booleans()),
        )
        for name, kind, node_id in zip(names, kinds[1:], ids[1:], strict=False)
    )
    diskful = kinds[0] is ReplicaType.DISKFUL
    return DrbdConfig(
        datamesh_revision=1,
        node_id=ids[0],
        type=kinds[0],
        address=Address(ipv4="10.0.0.1", port=draw(_PORTS)),
        peers=peers,
        peers_initialized=True,
        device_minor=draw(st.integers(0, 1_048_575)),
        disk=f"/dev/{draw(_TEXT)}" if diskful else None,
        shared_secret=Secret(draw(_TEXT)),
        shared_secret_alg=draw(st.sampled_from(list(SharedSecretAlgorithm))),
        quorum_minimum_redundancy=draw(st.sampled_from([None, 1, 2, 4])),
        allow_two_primaries=draw(st.booleans()),
        hidden=draw(st.booleans()),
    )


@pytest.fixture(scope="module")
def tool() -> Drbdadm:
    return drbdadm()


@given(batch=st.lists(configs(), min_size=BATCH, max_size=BATCH, unique_by=lambda config: config.device_minor))
@settings(max_examples=30, deadline=None)
def test_drbdadm_takes_from_any_file_what_was_meant(tool: Drbdadm, batch: list[DrbdConfig]) -> None:
    meant: dict[str, DrbdConfig] = {}
    text = ""
    for number, config in enumerate(batch):
        address = Address(ipv4=f"10.0.{number}.1", port=config.address.port if config.address else 7000)
        config = replace(config, address=address)
        name = f"v{number}"
        try:
            rendered = render(VolumeName(name), OWN, config)
        except UnwritableConfig:
            assert not _can_be_written(config), "only what no file can say is refused"
            continue
        meant[name] = config
        # One file for all: its first lines are the same in each.
        text += rendered if not text else rendered.partition("}\n")[2]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "all.res"
        file.write_text(text or "global { usage-count no; }\n")
        if meant:
            _assert_means(meant, tool.would_run("up", file, OWN, "all"))


def _assert_means(meant: Mapping[str, DrbdConfig], commands: list[list[str]]) -> None:
    found: dict[str, dict[str, list[list[str]]]] = {}
    minors = {str(config.device_minor): name for name, config in meant.items()}
    for _, verb, subject, *rest in (words for words in commands if words[0] == "drbdsetup"):
        found.setdefault(minors.get(subject, subject), {}).setdefault(verb, []).append(rest)
    assert set(found) == set(meant), "no resource more, no resource less"
    for name, config in meant.items():
        did = found[name]
        assert [words[0] for words in did["new-resource"]] == [str(config.node_id)]
        assert [words[0] for words in did["new-minor"]] == [str(config.device_minor)]
        attached = [words[0] for words in did.get("attach", [])]
        assert attached == ([config.disk] if config.type is ReplicaType.DISKFUL else [])
        peers = {int(words[0]): words for words in did.get("new-peer", [])}
        assert set(peers) == {peer.node_id for peer in linked_peers(config)}
        secret = config.shared_secret
        assert secret is not None
        for peer in linked_peers(config):
            words = peers[peer.node_id]
            assert f"--_name={peer.node_name}" in words
            assert f"--shared-secret={secret.reveal()}" in words
            assert ("--allow-two-primaries=yes" in words) is config.allow_two_primaries
        paths = {int(words[0]): words[2] for words in did.get("new-path", [])}
        assert paths == {peer.node_id: _endpoint(peer.address) for peer in linked_peers(config)}


def _endpoint(address: Address) -> str:
    return f"ipv4:{address.ipv4}:{address.port}"


def _can_be_written(config: DrbdConfig) -> bool:
    assert config.shared_secret is not None
    texts = [config.shared_secret.reveal(), config.disk or "x", *(peer.node_name for peer in linked_peers(config))]
    return all(text.isascii() and text.isprintable() for text in texts) and len(texts[0]) <= 63


@pytest.mark.parametrize(
    "changes",
    [
        {"disk": "none"},
        {"disk": "internal"},
        {"disk": "-x"},
        {"disk": "/etc/shadow"},
        {"disk": "/dev/a\nquorum off"},
        {"address": Address(ipv4="999.1.1.1", port=7000)},
        {"address": Address(ipv4="1.2.3", port=7000)},
        {"address": Address(ipv4="10.0.0.1;", port=7000)},
        {"address": Address(ipv4="٣.1.1.1", port=7000)},
        {"shared_secret": Secret("x" * 64)},
        {"shared_secret": Secret('a"\n}')},
        {"shared_secret": Secret("ä")},
    ],
)
def test_what_would_mean_something_else_is_not_written(changes: dict[str, object]) -> None:
    whole = DrbdConfig(
        datamesh_revision=1,
        node_id=0,
        type=ReplicaType.DISKFUL,
        address=Address(ipv4="10.0.0.1", port=7000),
        peers_initialized=True,
        device_minor=1,
        disk="/dev/vg0/a",
        shared_secret=Secret("s"),
        shared_secret_alg=SharedSecretAlgorithm.SHA256,
    )
    assert render(VolumeName("v"), OWN, whole)
    with pytest.raises(UnwritableConfig) as refused:
        render(VolumeName("v"), OWN, replace(whole, **changes))
    assert "x" * 64 not in str(refused.value)


@pytest.mark.parametrize("name", ["all", "global", "minor-1", "a%s", "a:b", "a/0", "-x", ""])
def test_no_file_is_written_for_a_name_that_means_something_else(name: str) -> None:
    with pytest.raises(UnwritableConfig):
        render(VolumeName(name), OWN, _SMALL)


_SMALL = DrbdConfig(
    datamesh_revision=1,
    node_id=0,
    type=ReplicaType.ACCESS,
    address=Address(ipv4="10.0.0.1", port=7000),
    peers_initialized=True,
    device_minor=1,
    shared_secret=Secret("s"),
    shared_secret_alg=SharedSecretAlgorithm.SHA256,
)
