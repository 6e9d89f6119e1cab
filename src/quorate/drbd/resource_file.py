"""The ``.res`` file of one member, from its complete config.

What each line is there for, where it is not plain:

- ``usage-count no``: every drbdadm is given this file alone (``-c``), and without that line it asks a server of its
  makers, now and then, to be counted: on a node without a way there, that takes a while.
- ``quorum majority`` only where a member counts for the others and has a disk; everyone else says 32, more than there
  can be, and has quorum only through a quorate peer (M21). A number would break the tie-breaker: recordings
  ``loss_2d_tb_qmr1``, ``matrix_2d_tb_q2_bm``.
- ``allow-remote-read no`` hides a peer from quorum. Only the diskful side says it: on the diskless side it hides the
  peers from that member itself (``access_invisible``).
- Members without a disk have nothing to tell one another and are not linked.
- A member's own links are enough; what its peers do among themselves is in their files. So is where their disks are.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from operator import attrgetter
from typing import Final

from quorate.api.meta import VolumeName
from quorate.api.names import kernel_resource
from quorate.api.reserved import why_no_resource
from quorate.api.storage.drbd import Address, DrbdConfig, Peer, ReplicaType
from quorate.drbd.errors import UnwritableConfig

#: More than a resource has members: never reached by counting.
UNREACHABLE_QUORUM: Final = 32
#: In place of a peer's disk, which drbdadm wants named and never looks at.
PEER_DISK: Final = "/dev/of-another-node"
#: drbdadm refuses a longer secret.
MAX_SECRET_LENGTH: Final = 63
_GLOBAL: Final = ("global {", "  usage-count no;", "}")


def missing(config: DrbdConfig) -> tuple[str, ...]:
    """The fields, by their wire names, that must be there before a file can be written; empty: complete."""
    needed = {
        "nodeId": config.node_id is not None,
        "type": config.type is not None,
        "address": config.address is not None,
        "peers": config.peers_initialized,
        "deviceMinor": config.device_minor is not None,
        "disk": config.disk is not None or config.type is not ReplicaType.DISKFUL,
        "sharedSecret": config.shared_secret is not None,
        "sharedSecretAlg": config.shared_secret_alg is not None,
    }
    return tuple(name for name, present in needed.items() if not present)


def render(volume: VolumeName, host_name: str, config: DrbdConfig) -> str:
    """The file for this node. The same config gives the same text. Raises UnwritableConfig.

    drbdadm takes the section of ``host_name`` for its own: it must be what ``uname -n`` says there.
    """
    lacking = missing(config)
    if lacking:
        raise UnwritableConfig(f"the config of {volume} on {host_name} is not complete: {', '.join(lacking)} missing")
    return "\n".join((*_GLOBAL, *_resource(volume, host_name, config))) + "\n"


def linked_peers(config: DrbdConfig) -> tuple[Peer, ...]:
    """The peers that this member has a connection to, by node id."""
    diskful = config.type is ReplicaType.DISKFUL
    linked = [peer for peer in config.peers if diskful or peer.type is ReplicaType.DISKFUL]
    return tuple(sorted(linked, key=attrgetter("node_id")))


def own_quorum(config: DrbdConfig) -> int | None:
    """The number that this member's file gives as its quorum; None: majority."""
    counted = config.type is ReplicaType.DISKFUL and not config.hidden
    return None if counted else UNREACHABLE_QUORUM


def _resource(volume: VolumeName, host_name: str, config: DrbdConfig) -> Iterator[str]:
    assert config.address is not None
    if why := why_no_resource(kernel_resource(volume)):
        raise UnwritableConfig(why)
    peers = linked_peers(config)
    yield f"resource {_quoted('volume', kernel_resource(volume))} {{"
    yield from _options(config)
    yield from _net(config)
    own_disk = config.disk if config.type is ReplicaType.DISKFUL else None
    yield from _host(host_name, config.node_id, config.address, config.device_minor, own_disk)
    for peer in peers:
        disk = PEER_DISK if peer.type is ReplicaType.DISKFUL else None
        yield from _host(peer.node_name, peer.node_id, peer.address, config.device_minor, disk)
    for peer in peers:
        yield "  connection {"
        yield f"    host {_quoted('host name', host_name)} address {_endpoint(config.address)};"
        yield f"    host {_quoted('nodeName', peer.node_name)} address {_endpoint(peer.address)};"
        if peer.hidden and config.type is ReplicaType.DISKFUL:
            yield "    net {"
            yield "      allow-remote-read no;"
            yield "    }"
        yield "  }"
    yield "}"


def _options(config: DrbdConfig) -> Iterator[str]:
    yield "  options {"
    yield "    auto-promote no;"
    yield f"    quorum {own_quorum(config) or 'majority'};"
    yield f"    quorum-minimum-redundancy {config.quorum_minimum_redundancy or 'off'};"
    yield "    on-no-quorum suspend-io;"
    yield "    on-no-data-accessible suspend-io;"
    yield "    on-suspended-primary-outdated force-secondary;"
    yield "  }"


def _net(config: DrbdConfig) -> Iterator[str]:
    assert config.shared_secret is not None
    assert config.shared_secret_alg is not None
    yield "  net {"
    yield "    protocol C;"
    yield f"    cram-hmac-alg {config.shared_secret_alg.value};"
    yield f"    shared-secret {_quoted('sharedSecret', config.shared_secret.reveal(), MAX_SECRET_LENGTH)};"
    yield "    rr-conflict retry-connect;"
    yield f"    allow-two-primaries {'yes' if config.allow_two_primaries else 'no'};"
    yield "    verify-alg crc32c;"
    yield "    ping-int 3;"
    yield "    ping-timeout 10;"
    yield "    connect-int 3;"
    yield "    timeout 20;"
    yield "  }"


def _host(
    node_name: str, node_id: int | None, address: Address, device_minor: int | None, disk: str | None
) -> Iterator[str]:
    yield f"  on {_quoted('nodeName', node_name)} {{"
    yield f"    node-id {node_id};"
    yield f"    address {_endpoint(address)};"
    yield "    volume 0 {"
    yield f"      device minor {device_minor};"
    if disk is None:
        yield "      disk none;"
    elif not disk.startswith("/dev/"):
        raise UnwritableConfig("disk is not a device: it must begin with /dev/")
    else:
        yield f"      disk {_quoted('disk', disk)};"
        yield "      meta-disk internal;"
    yield "    }"
    yield "  }"


def _endpoint(address: Address) -> str:
    try:
        IPv4Address(address.ipv4)
    except ValueError:
        raise UnwritableConfig(f"address.ipv4 {address.ipv4!r} is not an IPv4 address") from None
    return f"ipv4 {address.ipv4}:{address.port}"


def _quoted(field: str, text: str, max_length: int = 1024) -> str:
    """A string token that means exactly this text. The message names no value: it may be the secret."""
    if not 1 <= len(text) <= max_length:
        raise UnwritableConfig(
            f"{field} cannot be written: it has {len(text)} characters, allowed are 1 to {max_length}"
        )
    # The tool's scanner ends a string at the end of the line, whatever is escaped, and counts bytes.
    if not (text.isascii() and text.isprintable()):
        raise UnwritableConfig(f"{field} cannot be written: only printable ASCII characters are allowed")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
