"""What was last seen of the machine, and what became of the last steps. Only a cache: a restarted agent looks again.

A ``Sighting`` knows whether it still holds. It is marked *before* anything is done to what it shows, never after: a
look that was under way meanwhile may have seen the state before, and does not clear the mark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from quorate.agent.sightings import Sightings
from quorate.agent.steps import KERNEL, LVM
from quorate.api import names
from quorate.api.meta import VolumeName
from quorate.api.secret import Secret
from quorate.api.storage.drbd import DrbdStatus, Host, Path
from quorate.drbd.marks import LinkRules

if TYPE_CHECKING:
    from quorate.agent.inventory.discovery import Discovered
    from quorate.agent.lvm.seen import SeenGroups, SeenVolumes
    from quorate.agent.replica.duty import Duty
    from quorate.agent.replica.promise import Promise
    from quorate.agent.replica.quorum_loss import QuorumLoss
    from quorate.agent.replica.standstill import Signs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the last step of a purpose ended."""

    purpose: str
    about: str
    #: The step in words.
    command: str
    at: datetime
    #: None: it never came to an exit code (hung, no such program, a file error).
    exit_code: int | None = 0
    #: Everything it said, as it said it: not masked yet, so never shown.
    output: str = field(default="", repr=False)
    #: How often in a row steps of this purpose have failed, about the same thing.
    failures: int = 0
    #: How often in a row it was tried about the same thing, whatever came of it.
    times: int = 1
    hung: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the step did what it should."""
        return self.failures == 0


class Sighting(Generic[T]):
    """One thing as it was last seen."""

    __slots__ = ("_marks", "_seen_marks", "_value", "error", "known")

    def __init__(self, *, marks: int = 0) -> None:
        """``marks``: where counting begins. A look that began before, at an earlier one of this name, is not taken."""
        #: Whether it has ever been seen.
        self.known = False
        #: Why the last look failed; "" after one that did not.
        self.error = ""
        self._value: T | None = None
        self._marks = marks
        self._seen_marks = marks

    @property
    def value(self) -> T | None:
        """What was seen; None also when it is not there."""
        return self._value

    @property
    def current(self) -> bool:
        """Whether it was seen and nothing has happened since."""
        return self.known and self._marks == self._seen_marks

    @property
    def marks(self) -> int:
        """How often it was marked. Take it before a look begins, and hand it to :meth:`saw`."""
        return self._marks

    def mark(self) -> None:
        """Something happens, or has happened: what was seen holds no more."""
        self._marks += 1

    def saw(self, value: T | None, *, marks: int) -> None:
        """A look that began at ``marks`` has seen this; None: there is no such thing."""
        if marks >= self._seen_marks:
            self._value, self._seen_marks, self.known, self.error = value, marks, True, ""

    def failed(self, why: str, *, marks: int) -> None:
        """A look that began at ``marks`` has failed. What was seen before is kept, and does not hold."""
        self.error = why
        if self._marks == marks and self._seen_marks >= marks:
            self._marks += 1


class Memory:
    """Everything that this process remembers of its machine."""

    def __init__(self) -> None:
        #: DRBD resources by name. A value of None: the kernel has no such resource.
        self.kernel: dict[str, Sighting[DrbdStatus]] = {}
        #: All resources of the kernel at once: when that look was, and whether it worked.
        self.whole_kernel: Sighting[tuple[str, ...]] = Sighting()
        #: Whether events2 tells of every resource that comes.
        self.listening = False
        #: Every logical volume of the node, each marked as "group/name".
        self.logical_volumes: Sightings[SeenVolumes] = Sightings()
        #: Every volume group. Of one that is marked by its name only how much is free is in doubt.
        self.volume_groups: Sightings[SeenGroups] = Sightings()
        #: The drives. Marked by every look at groups: one that was pulled took its group along, and what was seen of it
        #: before says nothing of what is in its place now.
        self.drives: Sighting[tuple[Discovered, ...]] = Sighting()
        #: The text of files by path. A value of None: there is no such file.
        self.files: dict[str, Sighting[str]] = {}
        #: Secrets of volumes, by the name of the object that holds each. A value of None: there is none to be read.
        self.secrets: dict[str, Sighting[Secret]] = {}
        #: Whether ports are free, by "address:port".
        self.ports: dict[str, Sighting[bool]] = {}
        #: By resource and peer: the paths that events2 told of. Older versions of ``status --json`` have none.
        self.paths: dict[str, dict[int, dict[tuple[Host, Host], Path]]] = {}
        #: By resource: how often one of its links was seen to go, or may have gone while nobody looked.
        self.link_losses: dict[str, int] = {}
        #: By resource that is the younger of two primaries: whom it must not lose.
        self.duties: dict[str, Duty] = {}
        #: By resource: on how many good copies a write is promised to be, where more than one.
        self.promises: dict[str, Promise] = {}
        #: What agents before this one noted of them has been read: only then may a note be written over.
        self.promises_recalled = False
        #: Resources that are Primary here, and that have no disk here, as events2 told.
        self.primaries: set[str] = set()
        self.without_disk: set[str] = set()
        #: By resource: when it last lost quorum under a user here.
        self.quorum_losses: dict[str, QuorumLoss] = {}
        #: Resources that gain from a new generation when they lose quorum under a user, by their configs.
        self.renewable: set[str] = set()
        #: By resource: which of its good copies must not be parted, by their configs.
        self.link_rules: dict[str, LinkRules] = {}
        #: By resource: since when bits have been seen against peers that are as good as the own copy.
        self.marked_since: dict[str, datetime] = {}
        #: Resources that this agent has seen without such bits: others may have stood long before it was started.
        self.seen_unmarked: set[str] = set()
        #: Resources that are to be looked at again, because bits may have come without a word.
        self.second_looks: set[str] = set()
        #: By resource: when it was last looked at only because a resync makes progress, by the monotonic clock.
        self.progress_looked: dict[str, float] = {}
        #: By resource: when percentages in sync were last reported.
        self.progress_reported: dict[str, datetime] = {}
        #: By resource: since when its report has waited for what the resource comes to.
        self.unreported_since: dict[str, datetime] = {}
        #: By resource and peer: when its link began to look for the peer anew, the last times.
        self.attempts: dict[str, dict[int, deque[datetime]]] = {}
        #: By resource: what should move in the kernel, and since when it has not.
        self.signs: dict[str, Signs] = {}
        #: By resource: the look from which that was last noted.
        self.noted: dict[str, DrbdStatus | None] = {}
        #: Kernel resources that belong to no replica of this node, and were told of.
        self.strangers: set[str] = set()
        #: The uids of operations that this process has declared Running, and not over.
        self.operations_begun: set[str] = set()
        self._outcomes: dict[str, dict[str, Outcome]] = {}
        #: More than any resource that was forgotten was ever marked.
        self._first_mark = 0

    def resource(self, name: str) -> Sighting[DrbdStatus]:
        """What is known of a DRBD resource. The kernel has none that nobody saw or heard of, if everything was seen."""
        found = self.kernel.get(name)
        if found is None:
            found = self.kernel[name] = Sighting(marks=self._first_mark)
            if self.listening and self.whole_kernel.current:
                found.saw(None, marks=self._first_mark)
        return found

    def forget_secret(self, volume: str) -> None:
        """No replica of the volume is here any more. One that is made later under its name has another."""
        self.secrets.pop(names.shared_secret(VolumeName(volume)), None)

    def forget_resource(self, name: str) -> None:
        """The kernel has no such resource, and no replica here has its name: nobody will ask."""
        sighting = self.kernel.pop(name, None)
        if sighting is not None:
            self._first_mark = max(self._first_mark, sighting.marks + 1)
        for known in (
            self.paths,
            self.link_losses,
            self.progress_looked,
            self.progress_reported,
            self.unreported_since,
            self.quorum_losses,
            self.marked_since,
            self.link_rules,
            self.signs,
            self.noted,
            self.attempts,
        ):
            known.pop(name, None)
        for some in (self.strangers, self.renewable, self.seen_unmarked):
            some.discard(name)

    def end_quorum_loss(self, resource: str) -> None:
        """Quorum is there again, or may have been: the next loss is another one, however soon it comes."""
        if (loss := self.quorum_losses.get(resource)) is not None and loss.standing:
            self.quorum_losses[resource] = replace(loss, standing=False)

    def has_reported(self, name: str) -> None:
        """Nothing of a resource waits to be reported any more."""
        self.unreported_since.pop(name, None)

    def has_no_marks(self, name: str) -> None:
        """No bits stand against a good peer of a resource any more."""
        self.marked_since.pop(name, None)
        self.seen_unmarked.add(name)

    def file(self, path: str) -> Sighting[str]:
        """What is known of a file."""
        return self.files.setdefault(path, Sighting())

    def port(self, subject: str) -> Sighting[bool]:
        """What is known of a port."""
        return self.ports.setdefault(subject, Sighting())

    def mark(self, change: str) -> None:
        """Something that a command changes (``Run.changes``) is about to be changed, or has been."""
        kind, _, name = change.partition("/")
        if kind == KERNEL:
            self.resource(name).mark()
        elif kind == LVM and name:
            self.logical_volumes.mark(name)
            self.volume_groups.mark(name.partition("/")[0])
        elif kind == LVM:
            self.logical_volumes.mark_all()
            self.volume_groups.mark_all()

    def outcomes(self, work: str) -> Mapping[str, Outcome]:
        """The last outcome of each purpose in a piece of work. A copy: a snapshot may keep it."""
        known = self._outcomes.get(work)
        return dict(known) if known else {}

    def remember(self, work: str, outcome: Outcome) -> None:
        """Keep an outcome in place of the last one of its purpose."""
        self._outcomes.setdefault(work, {})[outcome.purpose] = outcome

    def last(self, work: str, purpose: str) -> Outcome | None:
        """The last outcome of a purpose."""
        return self._outcomes.get(work, {}).get(purpose)

    def forget(self, work: str, *purposes: str) -> None:
        """Forget outcomes: all of a piece of work, or those of some purposes."""
        if not purposes:
            self._outcomes.pop(work, None)
            return
        for purpose in purposes:
            self._outcomes.get(work, {}).pop(purpose, None)

    def works(self) -> Iterator[str]:
        """Every piece of work of which an outcome is remembered."""
        yield from tuple(self._outcomes)
