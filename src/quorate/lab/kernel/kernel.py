"""The calls that drbdsetup makes, one method each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from quorate.lab.kernel.block import BlockDevice
from quorate.lab.kernel.io import Io
from quorate.lab.kernel.reply import Reply
from quorate.lab.kernel.world import World


class Kernel:
    """The DRBD module of one node. Options are given as drbdsetup spells them: {"ping-int": "3", "quorum": "majority"}.

    A call that names something that does not exist answers with the kernel's number for it (158, 127, 162 …).
    """

    def __init__(self, world: World, name: str, addresses: tuple[str, ...]) -> None:
        self.world = world
        self.name = name
        self.addresses = addresses

    # -- resources, minors, peers ------------------------------------------------------------------------------------

    def new_resource(self, name: str, node_id: int, options: Mapping[str, str] = {}) -> Reply:  # noqa: B006
        """``drbdsetup new-resource``."""
        raise NotImplementedError

    def resource_options(self, name: str, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup resource-options``."""
        raise NotImplementedError

    def new_minor(self, name: str, minor: int, volume: int, *, diskless: bool = False) -> Reply:
        """``drbdsetup new-minor``; ``diskless`` is meant to stay without a disk (a client)."""
        raise NotImplementedError

    def new_peer(self, name: str, peer: int, options: Mapping[str, str]) -> Reply:
        """``drbdsetup new-peer``: peer is a node id; options are net options, ``_name`` among them."""
        raise NotImplementedError

    def net_options(self, name: str, peer: int, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup net-options``."""
        raise NotImplementedError

    def peer_device_options(
        self, name: str, peer: int, volume: int, options: Mapping[str, str], *, set_defaults: bool = False
    ) -> Reply:
        """``drbdsetup peer-device-options``; ``bitmap`` can only be set before the device is attached."""
        raise NotImplementedError

    def new_path(self, name: str, peer: int, local: str, remote: str) -> Reply:
        """``drbdsetup new-path``; addresses as "ipv4:10.0.0.1:7000"."""
        raise NotImplementedError

    def del_path(self, name: str, peer: int, local: str, remote: str) -> Reply:
        """``drbdsetup del-path``."""
        raise NotImplementedError

    def del_peer(self, name: str, peer: int) -> Reply:
        """``drbdsetup del-peer``: disconnects first."""
        raise NotImplementedError

    def forget_peer(self, name: str, peer: int) -> Reply:
        """``drbdsetup forget-peer``: its slot in the metadata, and with it its vote."""
        raise NotImplementedError

    def del_minor(self, minor: int) -> Reply:
        """``drbdsetup del-minor``."""
        raise NotImplementedError

    def del_resource(self, name: str) -> Reply:
        """``drbdsetup del-resource``."""
        raise NotImplementedError

    def down(self, name: str) -> Reply:
        """``drbdsetup down``."""
        raise NotImplementedError

    # -- disks -------------------------------------------------------------------------------------------------------

    def attach(self, minor: int, device: BlockDevice, path: str, options: Mapping[str, str] = {}) -> Reply:  # noqa: B006
        """``drbdsetup attach``; 119 without metadata, 165 if its activity log has to be applied first."""
        raise NotImplementedError

    def disk_options(self, minor: int, options: Mapping[str, str], *, set_defaults: bool = False) -> Reply:
        """``drbdsetup disk-options``."""
        raise NotImplementedError

    def detach(self, minor: int, *, force: bool = False, diskless: bool = False) -> Reply:
        """``drbdsetup detach``; ``diskless`` makes it a client from now on."""
        raise NotImplementedError

    def outdate(self, minor: int) -> Reply:
        """``drbdsetup outdate``."""
        raise NotImplementedError

    def invalidate(self, minor: int, sync_from: int | None = None) -> Reply:
        """``drbdsetup invalidate``: fetch everything from a peer again."""
        raise NotImplementedError

    def invalidate_remote(self, name: str, peer: int, volume: int) -> Reply:
        """``drbdsetup invalidate-remote``."""
        raise NotImplementedError

    def new_current_uuid(self, minor: int, *, clear_bitmap: bool = False, force_resync: bool = False) -> Reply:
        """``drbdsetup new-current-uuid``: how a fresh volume is brought to life."""
        raise NotImplementedError

    def resize(self, minor: int, size: int | None = None, *, assume_clean: bool = False) -> Reply:
        """``drbdsetup resize``: size in bytes, None for as much as all members have. Success does not mean it grew."""
        raise NotImplementedError

    def verify(self, name: str, peer: int, volume: int, start: int | None = None, stop: int | None = None) -> Reply:
        """``drbdsetup verify`` toward one peer; start and stop in bytes."""
        raise NotImplementedError

    def suspend_io(self, minor: int) -> Reply:
        """``drbdsetup suspend-io``."""
        raise NotImplementedError

    def resume_io(self, minor: int) -> Reply:
        """``drbdsetup resume-io``."""
        raise NotImplementedError

    def pause_sync(self, name: str, peer: int, volume: int) -> Reply:
        """``drbdsetup pause-sync``."""
        raise NotImplementedError

    def resume_sync(self, name: str, peer: int, volume: int) -> Reply:
        """``drbdsetup resume-sync``."""
        raise NotImplementedError

    # -- connections and roles ---------------------------------------------------------------------------------------

    def connect(self, name: str, peer: int, *, discard_my_data: bool = False) -> Reply:
        """``drbdsetup connect``."""
        raise NotImplementedError

    def disconnect(self, name: str, peer: int, *, force: bool = False) -> Reply:
        """``drbdsetup disconnect``."""
        raise NotImplementedError

    def primary(self, name: str, *, force: bool = False) -> Reply:
        """``drbdsetup primary``."""
        raise NotImplementedError

    def secondary(self, name: str, *, force: bool = False) -> Reply:
        """``drbdsetup secondary``."""
        raise NotImplementedError

    # -- what users of the device do ---------------------------------------------------------------------------------

    def open(self, minor: int, process: str, pid: int, *, writable: bool = True) -> bool:
        """Open the device; False with "Wrong medium type": not Primary."""
        raise NotImplementedError

    def close(self, minor: int, pid: int) -> None:
        """Close the device."""
        raise NotImplementedError

    def write(self, minor: int, offset: int, length: int, tag: Hashable) -> Io:
        """Write one tag over a range."""
        raise NotImplementedError

    def read(self, minor: int, offset: int) -> Io:
        """Read the tag at an offset; ``Io.result`` when done."""
        raise NotImplementedError

    def device_size(self, minor: int) -> int | None:
        """The size of /dev/drbdN in bytes; None if there is no such minor."""
        raise NotImplementedError

    # -- what drbdsetup prints ---------------------------------------------------------------------------------------

    def resources(self) -> list[str]:
        """The configured resources, in the order of their creation."""
        raise NotImplementedError

    def status(self, name: str | None = None) -> list[dict[str, Any]]:
        """As ``drbdsetup status --json`` (with --verbose --statistics) gives it; empty for an unknown name."""
        raise NotImplementedError

    def show(self, name: str | None = None) -> list[dict[str, Any]]:
        """What is configured: see ``show`` for the shape."""
        raise NotImplementedError

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with every ``drbdsetup events2`` line (no timestamp) from now on; returns how to stop."""
        raise NotImplementedError

    def dump(self) -> list[str]:
        """The lines that events2 starts with: what exists, then "exists -"."""
        raise NotImplementedError
