"""The one pair of eyes on LVM: one look at all logical volumes serves everybody who asked for one.

Logical volumes cost one ``lvs``. Groups and their devices cost ``vgs`` and ``pvs`` more, and are looked at only when
something says so: work of ours, volumes or drives that changed, or that it is long ago.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from quorate.agent.backoff import wait_before_retry
from quorate.agent.hands import LookFailed
from quorate.agent.lvm.piece import NEVER
from quorate.agent.lvm.report import LVS, PVS, VGS, read_devices, read_groups, read_volumes
from quorate.agent.lvm.seen import SeenGroups, SeenVolumes
from quorate.agent.memory import LogicalVolumeSeen, Outcome, Sighting
from quorate.agent.node import LVM_LOOK, Node, Wake
from quorate.agent.steps import LVM, Look
from quorate.engine import Key, Signal
from quorate.engine.logs import get_logger
from quorate.errors import QuorateError

log = get_logger(__name__)

#: The subject of a look at groups; without a subject it is one at volumes.
GROUPS: Final = "groups"
GROUPS_LOOK: Final = f"{LVM_LOOK}-{GROUPS}"


#: Volumes come and go in bursts, and what they leave free is told now and then: seconds between two looks for that.
GROUPS_REST: Final = 2.0

#: A look changes nothing, so it may be killed; but drives may be slow.
SILENCE: Final = 60.0
#: LVM's exit code when it could not read everything; what it could is in its report.
_IN_PART: Final = 5


class Looker:
    """What was last seen of LVM, and who must be told of changes."""

    def __init__(self, node: Node, groups_key: Key) -> None:
        self._node = node
        self._groups_key = groups_key
        self.volumes: Sighting[SeenVolumes] = Sighting()
        self.groups: Sighting[SeenGroups] = Sighting()
        self.volumes_at = NEVER
        self.groups_at = NEVER
        self._groups_rest_until = -inf
        #: Which key a volume on the node concerns, by group and name.
        self.followers: dict[tuple[str, str], Key] = {}
        node.hands.lookers[LVM] = self.look

    @property
    def current_volumes(self) -> SeenVolumes | None:
        """The volumes, if that still holds. Whether it does, the shared memory knows: everybody marks there."""
        return self.volumes.value if self._node.memory.logical_volumes.current else None

    @property
    def current_groups(self) -> SeenGroups | None:
        """The groups, if that still holds."""
        return self.groups.value if self.groups.current else None

    def pauses(self) -> tuple[float, float]:
        """Seconds before volumes, and groups, may be looked at again: above zero after looks that failed."""
        volumes, groups = (wait_before_retry(last, self._node.clock.now()) for last in self._looks())
        return volumes, groups

    def troubles(self) -> tuple[str, str]:
        """Why volumes, and groups, cannot be looked at: once that has failed more than once in a row, or hangs."""
        errors = (self._node.memory.logical_volumes.error, self.groups.error)
        volumes, groups = (
            error if last is not None and (last.failures > 1 or last.hung) else ""
            for error, last in zip(errors, self._looks(), strict=True)
        )
        return volumes, groups

    def mark(self) -> None:
        """Something is about to be done to LVM, or has been."""
        self._node.memory.logical_volumes.mark()
        self.groups.mark()

    def mark_groups(self) -> None:
        """Something was done to groups or their devices: who asks for them needs to see it at once."""
        self.mark()
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
        shared = self._node.memory.logical_volumes
        marks = shared.marks
        try:
            report, incomplete = await self._told(LVS)
            seen = SeenVolumes(read_volumes(report), incomplete)
        except (QuorateError, OSError) as error:
            shared.failed(str(error), marks=marks)
            log.warning("could not look at logical volumes", error=str(error))
            for key in {*self.followers.values(), self._groups_key}:
                self._node.disks.wake(key)
            raise
        before, self.volumes_at = self.volumes.value, self._node.clock.now()
        self.volumes.saw(seen, marks=marks)
        shared.saw(
            {
                f"{volume.group}/{volume.name}": LogicalVolumeSeen(volume.group, volume.name, volume.size, volume.tags)
                for volume in seen.volumes
            },
            marks=marks,
        )
        if before is not None and before != seen:
            self._tell(before, seen)

    async def _look_at_groups(self) -> None:
        marks = self.groups.marks
        try:
            (groups, without), (devices, lacking) = await self._told(VGS), await self._told(PVS)
            seen = SeenGroups(read_groups(groups), read_devices(devices), without or lacking)
        except (QuorateError, OSError) as error:
            self.groups.failed(str(error), marks=marks)
            log.warning("could not look at volume groups", error=str(error))
            raise
        changed = self.groups.known and self.groups.value != seen
        self.groups_at = self._node.clock.now()
        self._groups_rest_until = self._node.clock.monotonic() + GROUPS_REST
        self.groups.saw(seen, marks=marks)
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
        return last(LVM_LOOK, Look(LVM).purpose), last(GROUPS_LOOK, Look(LVM).purpose)

    def _tell(self, before: SeenVolumes, now: SeenVolumes) -> None:
        """Wake the keys of volumes that changed. Sizes, pools and free space may have changed with them."""
        for volume in set(before.volumes) ^ set(now.volumes):
            key = self.followers.get((volume.group, volume.name))
            if key is not None:
                self._node.disks.wake(key)
        self.groups.mark()
        self._node.disks.wake(self._groups_key)


@dataclass(frozen=True, slots=True)
class Done:
    """What follows a piece of work on LVM: what was seen holds no more, and these keys look at it again."""

    looker: Looker
    signal: Signal
    keys: tuple[Key, ...]
    #: It was work on groups.
    on_groups: bool = False

    def __call__(self) -> None:
        (self.looker.mark_groups if self.on_groups else self.looker.mark)()
        for key in self.keys:
            self.signal.wake(key)
