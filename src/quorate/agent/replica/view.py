"""Everything that a decision about one replica depends on, frozen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from quorate.agent.lvm.seen import SeenVolume
from quorate.agent.memory import Outcome
from quorate.agent.replica.quorum_loss import QuorumLoss
from quorate.api.meta import NodeName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import DrbdActual, DrbdConfig, DrbdStatus
from quorate.api.storage.llv import LVMLogicalVolume
from quorate.api.storage.rvr import ReplicatedVolumeReplica

if TYPE_CHECKING:
    from quorate.agent.replica.standstill import Signs


@dataclass(frozen=True, slots=True)
class Text:
    """A file: what it is to say."""

    content: str = field(repr=False)
    digest: str

    @classmethod
    def of(cls, content: str) -> Text:
        """The text with its digest."""
        return cls(content, hashlib.sha256(content.encode()).hexdigest()[:16])


@dataclass(frozen=True, slots=True)
class KernelView:
    """What is known of the kernel's resource."""

    #: Whether it was ever seen, and whether that still holds.
    known: bool = False
    current: bool = False
    #: None: the kernel has no such resource.
    status: DrbdStatus | None = None
    error: str = ""
    #: Everything is to be looked at anyway, at once.
    look_at_all: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """One replica, and all that is known of it on its node."""

    replica: ReplicatedVolumeReplica
    node_name: NodeName
    #: The kernel resource; also the volume's name.
    resource: str
    file: str
    temporary_file: str
    #: Where DRBD's tools keep how large the disk under its minor was when they last saw it; "" without a minor.
    last_known_file: str = ""
    kernel: KernelView = KernelView()
    #: What the file is to say; None while the config is incomplete.
    intended: Text | None = None
    #: Why no file can say it, or what is missing from the config.
    incomplete: str = ""
    unwritable: str = ""
    #: The Secret that the config names, while what is in it is not known; and that, once it is.
    unread_secret: str = ""
    secret: Secret | None = None
    #: Whether the two files have been looked at since something may have changed them.
    files_current: bool = False
    #: What the file says; None: there is no file.
    written: str | None = field(default=None, repr=False)
    #: The temporary file is there: what the file says has not been adjusted to yet.
    unadjusted: bool = False
    crypto_file: str = "/proc/crypto"
    #: Hash algorithms of the kernel, lower case; None: not looked yet.
    algorithms: frozenset[str] | None = None
    max_peers: int = 7
    logical_volume: LVMLogicalVolume | None = None
    #: When a drive under it counts as gone for good; None: none is away.
    drive_lost_at: datetime | None = None
    #: Whether the logical volume that ``actual.metadataCreated`` names still has an object.
    metadata_owner_exists: bool = False
    #: Whether what was seen of the logical volume of ``config.disk`` still holds…
    volumes_current: bool = False
    #: … and that; None: there is none.
    volume: SeenVolume | None = None
    #: What should move in the kernel, and since when it has not; and when that was last looked at.
    signs: Signs = field(default_factory=dict)
    seen_at: datetime | None = None
    #: Another program was found to listen on its port.
    port_taken: bool = False
    #: By peer: the last ten moments at which its link began to look for it anew.
    attempts: Mapping[int, tuple[datetime, ...]] = field(default_factory=dict)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    #: Work on the resource is under way, or a command of it hangs.
    busy: bool = False
    hung: bool = False
    progress_reported: datetime | None = None
    #: Since when a report has been held back; None: none is.
    unreported_since: datetime | None = None
    #: Its I/O is suspended by its agent, for want of copies.
    held: bool = False
    #: Since when bits have been seen against good peers; None: there are none.
    marked_since: datetime | None = None
    #: When it last lost quorum under a user here; None: nobody knows of any.
    quorum_loss: QuorumLoss | None = None
    #: The next agent would know that this one yields, as the config says, or does not.
    duty_noted: bool = True
    #: Another replica of the same volume on this node that was there first.
    elder: str = ""
    #: Why no command may name the resource; "" if one may.
    unusable_name: str = ""

    def has_lost_its_drive(self, now: datetime) -> bool:
        """Whether a drive under its logical volume is gone for good."""
        return self.drive_lost_at is not None and now >= self.drive_lost_at

    @property
    def new_file(self) -> str:
        """What is about to become the file."""
        return f"{self.file}_new"

    @property
    def config(self) -> DrbdConfig:
        """What is to be realised."""
        return self.replica.status.drbd.config

    @property
    def actual(self) -> DrbdActual:
        """What has been realised."""
        return self.replica.status.drbd.actual

    @property
    def status(self) -> DrbdStatus | None:
        """What the kernel shows."""
        return self.kernel.status

    @property
    def without_files(self) -> bool:
        """Whether it is known that no file of ours is there."""
        return self.files_current and self.written is None and not self.unadjusted
