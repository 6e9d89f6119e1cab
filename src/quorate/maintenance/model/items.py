"""Nodes, drives, replicas and groups as the model links them.

A replica is *troubled* by each of its node, its drives and itself that is not plainly up or that somebody holds or has
announced work on. A group knows how many of its replicas are troubled, so in a healthy group a question is answered
without looking at the others. The count says "look closer", never "no": whether a lock counts depends on who asks.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from quorate.api.maintenance.action import HostState
from quorate.maintenance.model.counters import UNTOUCHED, Kind, NodeCounter, Standing
from quorate.maintenance.model.locks import Lock, Locks
from quorate.maintenance.nouns import DriveId, DriveInfo, GroupInfo, NodeInfo, Species, VDiskId, VDiskInfo, VolumeFacts


class Item:
    """What can be locked."""

    __slots__ = ("locks", "state", "troubled")

    def __init__(self, state: HostState) -> None:
        #: UNKNOWN also for what is only heard of, through a replica that lies on it.
        self.state = state
        self.locks: Locks | None = None
        self.troubled = state is not HostState.UP

    @property
    def replicas(self) -> Sequence[VDiskItem]:
        """What goes away with it."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """For people: in the names that they gave, as far as there are any."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Only its name."""
        return self.label

    def set_state(self, state: HostState) -> None:
        """It is up, down, restarting; or nobody knows."""
        self.state = state
        self.refresh()

    def add_lock(self, lock: Lock) -> None:
        """Somebody has it."""
        if self.locks is None:
            self.locks = Locks()
        self.locks.add(lock)
        self.refresh()

    def remove_lock(self, lock: Lock) -> None:
        """Not any more."""
        if self.locks is not None:
            self.locks.remove(lock)
            if not self.locks:
                self.locks = None
        self.refresh()

    def refresh(self) -> None:
        """Tell the groups if it has become, or ceased to be, a trouble."""
        troubled = self.is_trouble()
        if troubled == self.troubled:
            return
        self.troubled = troubled
        step = 1 if troubled else -1
        for replica in self.replicas:
            replica.shift(step)

    def is_trouble(self) -> bool:
        """Somebody who asks for a neighbour must look here."""
        locks = self.locks
        return self.state is not HostState.UP or (locks is not None and bool(locks.held or locks.announced))


class NodeItem(Item):
    """A node; ``info`` is None while it is only heard of."""

    __slots__ = ("counters", "drives", "guests", "id", "info", "rings", "standing", "vdisks")

    def __init__(self, node: int) -> None:
        super().__init__(HostState.UNKNOWN)
        self.id = node
        self.info: NodeInfo | None = None
        self.drives: dict[int, DriveItem] = {}
        self.vdisks: list[VDiskItem] = []
        #: Volumes with a member here that is no part of the group: a hidden one.
        self.guests: dict[int, GroupItem] = {}
        #: Where it is counted: the cluster, and its tenant if it has one.
        self.counters: tuple[NodeCounter, ...] = ()
        self.standing: Standing = UNTOUCHED
        #: Which rings of the state storage have a copy here.
        self.rings: tuple[int, ...] = ()

    @property
    def replicas(self) -> Sequence[VDiskItem]:
        return self.vdisks

    @property
    def label(self) -> str:
        return f"node {self.id}" if self.info is None else self.info.host

    @property
    def name(self) -> str:
        return str(self.id) if self.info is None else self.info.host

    def stand(self, standing: Standing) -> None:
        """Count it where it stands."""
        if standing != self.standing:
            for counter in self.counters:
                counter.move(self.id, self.standing, standing)
            self.standing = standing

    def standing_at(self, now: int) -> Standing:
        """Where it stands then."""
        if self.info is None:
            return UNTOUCHED
        down = self.state is HostState.DOWN
        if self.state is HostState.RESTART:
            return Standing(Kind.HELD)
        if (locks := self.locks) is not None:
            if locks.held and (self.state is not HostState.UP or any(held.deadline > now for held in locks.held)):
                return Standing(Kind.HELD)
            if locks.announced:
                return Standing(Kind.ANNOUNCED, down=down)
            if locks.queued:
                return Standing(Kind.QUEUED, locks.queued[0].id, down)
        return Standing(Kind.FREE, down=True) if down else UNTOUCHED


class DriveItem(Item):
    """A drive; ``info`` is None while it is only heard of."""

    __slots__ = ("id", "info", "node", "vdisks")

    def __init__(self, drive: DriveId, node: NodeItem) -> None:
        super().__init__(HostState.UNKNOWN)
        self.id = drive
        self.node = node
        self.info: DriveInfo | None = None
        self.vdisks: list[VDiskItem] = []

    @property
    def replicas(self) -> Sequence[VDiskItem]:
        return self.vdisks

    @property
    def label(self) -> str:
        return f"drive {self.info.title} ({self.id})" if self.info is not None and self.info.title else str(self.id)

    @property
    def name(self) -> str:
        return self.info.title or str(self.id) if self.info is not None else str(self.id)


class VDiskItem(Item):
    """A replica: a part of a group."""

    __slots__ = ("drives", "group", "info", "node", "troubles")

    def __init__(self, info: VDiskInfo, group: GroupItem, node: NodeItem, drives: tuple[DriveItem, ...]) -> None:
        super().__init__(info.state)
        self.info = info
        self.group = group
        self.node = node
        self.drives = drives
        #: How many of node, drives and the replica itself are troubles.
        self.troubles = 0

    @property
    def id(self) -> VDiskId:
        """Its name's numbers."""
        return self.info.id

    @property
    def replicas(self) -> Sequence[VDiskItem]:
        return (self,)

    @property
    def label(self) -> str:
        return self.info.title or str(self.info.id)

    def link(self) -> None:
        """It is there."""
        # By id, so that the same cluster gives the same answer in whatever order it became known.
        insort(self.node.vdisks, self, key=_identity)
        for drive in self.drives:
            insort(drive.vdisks, self, key=_identity)
        self.shift(self.node.troubled + sum(drive.troubled for drive in self.drives) + self.troubled)

    def unlink(self) -> None:
        """It is gone."""
        self.node.vdisks.remove(self)
        for drive in self.drives:
            drive.vdisks.remove(self)
        self.shift(-self.troubles)

    def shift(self, step: int) -> None:
        """So many troubles more."""
        before = self.troubles
        self.troubles += step
        self.group.troubled += (self.troubles > 0) - (before > 0)


def _identity(vdisk: VDiskItem) -> VDiskId:
    return vdisk.info.id


class GroupItem:
    """An erasure group, or a volume."""

    __slots__ = ("foresight", "info", "members", "species", "troubled", "volume")

    def __init__(self, info: GroupInfo) -> None:
        self.members: list[VDiskItem] = []
        #: How many of them are troubled.
        self.troubled = 0
        self.learn(info)

    def learn(self, info: GroupInfo) -> None:
        """What is known of it is another."""
        self.info = info
        #: One of the two is None.
        self.species: Species | None = info.species
        self.volume: VolumeFacts | None = info.volume
        #: Whether the volume can be written to without some of its parts; found out once, as it is asked for often.
        self.foresight: dict[frozenset[VDiskId], bool] = {}

    @property
    def label(self) -> str:
        """For people."""
        if self.volume is not None:
            name, claim = self.volume.name, self.volume.claim
            return f"claim {claim} (volume {name})" if claim else f"volume {name}"
        return f"group {self.info.id} ({'' if self.species is None else self.species.word})"

    @property
    def name(self) -> str:
        """Only its name: the claim's, if there is one."""
        return str(self.info.id) if self.volume is None else self.volume.claim or self.volume.name
