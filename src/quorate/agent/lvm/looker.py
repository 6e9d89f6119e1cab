"""The one pair of eyes on LVM: one look at all logical volumes serves everybody who asked for one.

Logical volumes cost one ``lvs``. Groups and their devices cost ``vgs`` and ``pvs`` more, and are looked at only when
something says so: work of ours, volumes or drives that changed, or that it is long ago. Work on one volume puts only
that volume in doubt, and what is free of its group (``sightings``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.hands import LookFailed
from quorate.agent.lvm.piece import NEVER
from quorate.agent.lvm.report import LVS, PVS, VGS, VolumesReader, read_devices, read_groups
from quorate.agent.lvm.seen import SeenGroups, SeenVolume, SeenVolumes
from quorate.agent.memory import Outcome
from quorate.agent.node import LVM_LOOK, ORPHANS_KEY, Node, Wake
from quorate.agent.steps import LVM, Look
from quorate.engine import Key, Signal
from quorate.errors import QuorateError

#: The subject of a look at groups; without a subject it is one at volumes.
GROUPS: Final = "groups"
GROUPS_LOOK: Final = f"{LVM_LOOK}-{GROUPS}"


#: Volumes come and go in bursts, and what they leave free is told now and then: seconds between two looks for that.
GROUPS_REST: Final = 2.0

#: A look changes nothing, so it may be killed; but drives may be slow.
SILENCE: Final = 60.0
_LOOKING: Final = Look(LVM).purpose
#: LVM's exit code when it could not read everything; what it could is in its report.
_IN_PART: Final = 5


class Looker:
    """What was last seen of LVM, and who must be told of changes."""

    def __init__(self, node: Node, groups_key: Key) -> None:
        self._node = node
        self._groups_key = groups_key
        self._volumes = node.memory.logical_volumes
        self._groups = node.memory.volume_groups
        self.volumes_at = NEVER
        self.groups_at = NEVER
        self._groups_rest_until = -inf
        #: Which key a volume on the node concerns, by "group/name".
        self.followers: dict[str, Key] = {}
        self._reader = VolumesReader()
        node.hands.lookers[LVM] = self.look

    @property
    def current_volumes(self) -> SeenVolumes | None:
        """The volumes, if what was seen holds of all of them."""
        return self._volumes.value if self._volumes.current else None

    @property
    def known_volumes(self) -> SeenVolumes | None:
        """The volumes, if what was seen holds at least of which there are, pools among them."""
        return self._volumes.value if self._volumes.holds() else None

    def volumes_of(self, uid: str, places: Iterable[str]) -> SeenVolumes | None:
        """The volumes, if what was seen holds of those that are, or were, at these places, or are made for an object.

        Of its thin pool only what there is counts: how much of it is used changes all the time, by nobody's command.
        """
        seen = self._volumes.value
        if seen is None or not self._volumes.holds(*places):
            return None
        spare = seen.spare_of(uid)
        return seen if spare is None or self._volumes.holds(spare.place) else None

    @property
    def current_groups(self) -> SeenGroups | None:
        """The groups, if what was seen holds of all of them."""
        return self._groups.value if self._groups.current else None

    @property
    def known_groups(self) -> SeenGroups | None:
        """The groups, if what was seen holds but for how much of them is free: see :meth:`free_is_known`."""
        return self._groups.value if self._groups.holds() else None

    def free_is_known(self, group: str) -> bool:
        """Whether what was seen of a group's free space holds."""
        return self._groups.holds(group)

    def pauses(self) -> tuple[float, float]:
        """Seconds before volumes, and groups, may be looked at again: above zero after looks that failed."""
        volumes, groups = (wait_before_retry(last, self._node.clock.now()) for last in self._looks())
        return volumes, groups

    def troubles(self) -> tuple[str, str]:
        """Why volumes, and groups, cannot be looked at: once that has failed more than once in a row, or hangs."""
        errors = (self._volumes.error, self._groups.error)
        volumes, groups = (
            error if last is not None and (last.failures > 1 or last.hung) else ""
            for error, last in zip(errors, self._looks(), strict=True)
        )
        return volumes, groups

    def rest_no_more(self) -> None:
        """Something was, or may have been, done to groups or their devices: who asks for them must see it at once."""
        self._groups_rest_until = -inf

    def groups_rest(self) -> float:
        """Seconds for which what volumes have taken of their groups, or left, is not worth another look."""
        return max(0.0, self._groups_rest_until - self._node.clock.monotonic())

    def ask_for_volumes(self, signal: Signal, key: Key) -> None:
        """Have the volumes looked at, and the key woken."""
        self._node.hands.start(LVM_LOOK, (Look(LVM),), Wake(signal, key))

    def ask_for_groups(self, signal: Signal, key: Key) -> None:
        """Have the groups looked at, and the key woken."""
        self._node.hands.start(GROUPS_LOOK, (Look(LVM, GROUPS),), Wake(signal, key))

    async def look(self, subject: str) -> None:
        """Look; what is seen goes to memory, and who is concerned by a change is woken."""
        await (self._look_at_groups() if subject == GROUPS else self._look_at_volumes())

    async def _look_at_volumes(self) -> None:
        moment = self._volumes.moment
        try:
            report, incomplete = await self._told(LVS)
            seen = SeenVolumes(self._reader.read(report), incomplete)
        except (QuorateError, OSError) as error:
            self._volumes.failed(str(error), moment=moment)
            for key in {*self.followers.values(), self._groups_key}:
                self._node.disks.wake(key)
            raise
        before, self.volumes_at = self._volumes.value, self._node.clock.now()
        changed = () if before is None else before.places_other_than(seen)
        if before is not None and self._others_were_at_work(before, seen, changed):
            self._groups.mark_all()
            self.rest_no_more()
        self._volumes.saw(seen, moment=moment)
        self._tell(changed)

    async def _look_at_groups(self) -> None:
        moment = self._groups.moment
        try:
            (groups, without), (devices, lacking) = await self._told(VGS), await self._told(PVS)
            seen = SeenGroups(read_groups(groups), read_devices(devices), without or lacking)
        except (QuorateError, OSError) as error:
            self._groups.failed(str(error), moment=moment)
            raise
        changed = self._groups.known and self._groups.value != seen
        self.groups_at = self._node.clock.now()
        self._groups_rest_until = self._node.clock.monotonic() + GROUPS_REST
        self._groups.saw(seen, moment=moment)
        self._node.memory.drives.mark()
        if changed:
            self._node.disks.wake(self._groups_key)

    async def _told(self, argv: tuple[str, ...]) -> tuple[str, str]:
        """The report, and why there may be more than is in it."""
        completed = await self._node.hands.run(*argv, silence=SILENCE)
        if completed.exit_code == 0:
            return completed.stdout, ""
        why = f"{argv[0]} ended with {completed.exit_code}: {' '.join(completed.stderr.split())[:400]}"
        if completed.exit_code != _IN_PART or not completed.stdout.strip():
            raise LookFailed(why)
        return completed.stdout, why

    def _looks(self) -> tuple[Outcome | None, Outcome | None]:
        """How the last looks at volumes, and at groups, ended."""
        last = self._node.memory.last
        return last(LVM_LOOK, _LOOKING), last(GROUPS_LOOK, _LOOKING)

    def _others_were_at_work(self, before: SeenVolumes, now: SeenVolumes, changed: Iterable[str]) -> bool:
        """Whether space was taken or left by nobody's command of ours: who knows what else was done to groups."""
        return before.incomplete != now.incomplete or any(
            self._volumes.holds(place) and _space(before.get(place)) != _space(now.get(place)) for place in changed
        )

    def _tell(self, changed: Collection[str]) -> None:
        """Wake the keys of volumes that changed. What is free, and how pools are, may have changed with them."""
        keys = {self.followers[place]: None for place in changed if place in self.followers}
        for key in (*keys, self._groups_key, *self._of_orphans(changed)) if changed else ():
            self._node.disks.wake(key)

    def _of_orphans(self, changed: Iterable[str]) -> tuple[Key, ...]:
        """Nobody follows what belongs to no object, whether it has come or gone."""
        return () if all(place in self.followers for place in changed) else (ORPHANS_KEY,)


def _space(volume: SeenVolume | None) -> tuple[object, ...] | None:
    """What a volume takes of its group, and how it is: but for whether it is open, and how much of it is written."""
    if volume is None:
        return None
    return volume.uuid, volume.size, volume.pool, volume.parts, volume.extents, volume.active, volume.trouble


@dataclass(frozen=True, slots=True)
class Done:
    """What follows a piece of work on LVM: these keys look at what has become of it."""

    looker: Looker
    signal: Signal
    keys: tuple[Key, ...]
    #: It was work on groups.
    on_groups: bool = False

    def __call__(self) -> None:
        if self.on_groups:
            self.looker.rest_no_more()
        for key in self.keys:
            self.signal.wake(key)
