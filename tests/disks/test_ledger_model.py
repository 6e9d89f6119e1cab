"""The ledger beside a plain slow model of it, through any history that hypothesis can think of.

The model knows nothing of maps and patches: it is a list of lines that is gone through from the top, with the rules
written down once more, one by one, as the design says them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from quorate.api.longhorn.disk_schedule import DiskScheduledResourcesStatus
from quorate.api.meta import Bytes
from quorate.disks.entries import Entry, image, replica
from quorate.disks.ledger import Refusal, Terms, settle
from tests.disks.making import NOW

ENTRIES = tuple([replica(f"v{number}-0") for number in range(4)] + [image(f"v{number}-0") for number in range(2)])
entries = st.sampled_from(ENTRIES)
sizes = st.integers(1, 12)
limits = st.integers(0, 30)


@dataclass
class Line:
    """What the model remembers of an entry."""

    asked: int | None = None
    has: int = 0
    #: The size that was refused, while that stands.
    refused: int | None = None
    volume: int = 0
    born: int = 0


class LedgerBesideAModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lines = {entry: Line() for entry in ENTRIES}
        self.answers: dict[Entry, DiskScheduledResourcesStatus] = {}
        self.limit, self.open, self.clock = 20, True, 0

    @rule(entry=entries, size=sizes)
    def ask(self, entry: Entry, size: int) -> None:
        line = self.lines[entry]
        if line.asked is None:
            self.clock += 1
            line.born = self.clock
        line.asked = size

    @rule(entry=entries)
    def withdraw(self, entry: Entry) -> None:
        self.lines[entry].asked = None

    @rule(entry=entries)
    def make_or_grow_the_volume(self, entry: Entry) -> None:
        """Only to what is granted, as owners do."""
        line = self.lines[entry]
        line.volume = max(line.volume, line.has)

    @rule(entry=entries)
    def remove_the_volume(self, entry: Entry) -> None:
        self.lines[entry].volume = 0

    @rule(limit=limits)
    def resize_the_disk(self, limit: int) -> None:
        self.limit = limit

    @rule()
    def open_or_close_the_disk(self) -> None:
        self.open = not self.open

    @rule()
    def decide(self) -> None:
        before = self._total()
        terms = Terms(self.limit, None if self.open else Refusal("Disabled", "off"))
        self.answers = settle(
            {entry: Bytes(line.asked) for entry, line in self.lines.items() if line.asked is not None},
            self.answers,
            terms,
            in_use={entry: line.volume for entry, line in self.lines.items()},
            owner_created={entry: NOW + timedelta(seconds=line.born) for entry, line in self.lines.items()},
        )
        assert self._total() <= max(self.limit, before), "only a limit that fell leaves the sum above it"
        self._decide_slowly()
        self._compare()

    @precondition(lambda self: self.answers)
    @rule()
    def decide_twice(self) -> None:
        self.decide()
        before = dict(self.answers)
        self.decide()
        assert self.answers == before, "what is decided stays decided"

    def _total(self) -> int:
        return sum(answer.scheduled_size for answer in self.answers.values())

    def _decide_slowly(self) -> None:
        waiting = []
        for entry, line in self.lines.items():
            if line.asked is None:
                line.has, line.refused = min(line.has, line.volume), None
            elif line.asked <= line.has:
                line.has, line.refused = max(line.asked, min(line.has, line.volume)), None
            elif line.refused != line.asked:
                waiting.append((line.born, entry.name, entry.sort, line))
        for _, _, _, line in sorted(waiting, key=lambda each: each[:3]):
            assert line.asked is not None
            others = sum(other.has for other in self.lines.values() if other is not line)
            if self.open and others + line.asked <= self.limit:
                line.has, line.refused = line.asked, None
            else:
                line.refused = line.asked

    def _compare(self) -> None:
        for entry, line in self.lines.items():
            answer = self.answers.get(entry)
            if answer is None:
                assert (line.asked, line.has, line.refused) == (None, 0, None)
                continue
            assert answer.scheduled_size == line.has
            assert (answer.state == "rejected") == (line.refused is not None)
            assert answer.requested_size == (line.asked or 0)


TestLedgerBesideAModel = LedgerBesideAModel.TestCase
TestLedgerBesideAModel.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
