"""The hands of an agent: they carry out steps beside the passes, one piece of work per key at a time.

A pass must never wait for hardware. It calls ``start`` (an effect of its Plan) and is over; when the work has ended,
its outcomes are in ``memory`` and ``done`` is called, which wakes the key for the next pass.

- Work is named by a text such as ``drbd/pvc-1``: what must not be done at the same time has the same name. Asking for
  more while it is under way starts nothing, and ``done`` is called all the same when the present work has ended.
- Work may hold other names beside its own, such as that of a volume group. Who wants one of those is told when it is
  his turn, one after the other: were a hundred told at once, ninety-nine would ask in vain, each time.
- At most ``slots`` commands run at once on the node. Urgent work has a few of its own, looks included: what keeps two
  primaries apart waits neither for sixteen slow ``up``s nor for five hundred looks that one cut has asked for.
- A command that is silent for too long counts as hung. It gives its slot back; until its process has really ended
  nothing else starts under its name. Everything else goes on.
- Whatever a command, a file or a looker does wrong is an Outcome, never an exception out of here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from quorate.agent.machine import CommandHung, Completed, FileBeneath, Machine
from quorate.agent.memory import Memory, Outcome
from quorate.agent.steps import Look, MoveFile, RemoveFile, Run, Step, WriteFile, kernel_of, words
from quorate.drbd.marks import LinkRules, would_part
from quorate.drbd.masking import presentable
from quorate.engine.clock import Clock
from quorate.engine.logs import get_logger
from quorate.errors import QuorateError

log = get_logger(__name__)

#: Commands at once on one node.
SLOTS = 16
#: … and as many more for what is urgent.
URGENT_SLOTS = 4
#: Seconds between two looks at whether a hung command has ended.
HUNG_POLL = 1.0
#: Seconds after which the next in a line has his turn, if the one before has made no use of it.
TURN = 1.0
#: Seconds that a step under way may take to end when the agent stops.
GRACE = 5.0

_NUMBERS = re.compile(r"[0-9]+")
#: How what a command changes is called if it is a DRBD resource.
KERNEL_PREFIX = kernel_of("")

#: Looks at the subject and puts what it sees into memory; raises QuorateError or OSError when it cannot.
Looker = Callable[[str], Awaitable[None]]


class LookFailed(QuorateError):
    """Something on the machine could not be looked at."""


class LinksKept(QuorateError):
    """A command would part members that must not be parted now."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A command that has not ended yet, and when it was started."""

    command: str
    since: datetime


class Hands:
    """Carries out steps on one machine."""

    def __init__(
        self, machine: Machine, memory: Memory, *, clock: Clock, silence: float = 10.0, slots: int = SLOTS
    ) -> None:
        self.lookers: dict[str, Looker] = {}
        #: Seconds of silence after which a command counts as hung, unless its step says otherwise.
        self.silence = silence
        self._machine = machine
        self._memory = memory
        self._clock = clock
        self._slots = asyncio.Semaphore(slots)
        self._urgent_slots = asyncio.Semaphore(URGENT_SLOTS)
        #: In the task of a piece of work: whether it is urgent.
        self._urgent: ContextVar[bool] = ContextVar("urgent", default=False)
        #: … and its name.
        self._work: ContextVar[str] = ContextVar("work", default="")
        #: By name of the work, whom to tell of its end.
        self._under_way: dict[str, dict[Callable[[], None], None]] = {}
        #: By name, who waits to hold it beside his own, in the order in which they came.
        self._lines: dict[str, dict[Callable[[], None], None]] = {}
        self._hung: dict[str, str] = {}
        #: By name of the work, the command of it that runs, or hangs.
        self._running: dict[str, UnderWay] = {}
        #: By name of the work, what carries it out.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing = False

    def start(
        self,
        work: str,
        steps: Sequence[Step],
        done: Callable[[], None],
        *,
        beside: Sequence[str] = (),
        urgent: bool = False,
    ) -> bool:
        """Begin to carry out steps under this name; returns whether they were begun.

        They are not while other work of that name, or of one in ``beside``, is under way, or a command of it hangs;
        and while they are, nothing else begins under any of these names. ``done`` is called in either case, however
        often an equal one is handed over: when what is under way of that name has ended, and before when it hangs;
        when a name in ``beside`` is free again, and those who asked for it before have had their turn.
        """
        names = (work, *beside)
        if work in self._under_way:
            self._under_way[work][done] = None
            return False
        for name in beside:
            if name in self._under_way:
                self._lines.setdefault(name, {})[done] = None
                return False
        if self._closing:
            return False
        for name in beside:
            self._lines.get(name, {}).pop(done, None)
        self._under_way.update({name: {done: None} for name in names})
        self._tasks[work] = asyncio.create_task(self._carry_out(names, tuple(steps), urgent), name=f"work on {work}")
        return True

    def busy(self, work: str) -> bool:
        """Whether something is under way under this name."""
        return work in self._under_way

    def occupied(self, work: str) -> bool:
        """Whether something is under way under this name that has not come to a halt: whoever waits is told."""
        return work in self._under_way and work not in self._hung

    def hung(self, work: str) -> str:
        """The command that hangs under this name; "" if none does."""
        return self._hung.get(work, "")

    @property
    def running(self) -> Mapping[str, UnderWay]:
        """Every command that has not ended yet, by the name of its work."""
        return dict(self._running)

    async def run(self, *argv: str, silence: float | None = None, stdin: FileBeneath | None = None) -> Completed:
        """Run a command when a slot is free: for lookers."""
        async with self._urgent_slots if self._urgent.get() else self._slots:
            patience, work = self.silence if silence is None else silence, self._work.get()
            if work:
                self._running[work] = UnderWay(" ".join(argv), self._clock.now())
            if stdin is None:
                completed = await self._machine.run(*argv, silence=patience)
            else:
                completed = await self._machine.run(*argv, silence=patience, stdin=stdin)
            self._running.pop(work, None)  # one that was given up is still there
            return completed

    async def close(self) -> None:
        """Begin nothing more, let steps under way end within the grace, cancel what is left."""
        self._closing = True
        tasks = tuple(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_out(self, names: tuple[str, ...], steps: tuple[Step, ...], urgent: bool) -> None:
        self._urgent.set(urgent)
        self._work.set(names[0])
        work = names[0]
        # Several steps of one purpose are one attempt.
        before = {step.purpose: self._memory.last(work, step.purpose) for step in steps}
        try:
            for step in steps:
                if self._closing or not await self._succeeds(names, step, before[step.purpose]):
                    break
        finally:
            del self._tasks[work]
            self._hung.pop(work, None)
            self._running.pop(work, None)
            for done in {done: None for name in names for done in self._under_way.pop(name)}:
                done()
            for name in names:
                self._next_in_line(name)

    def _next_in_line(self, name: str) -> None:
        """Tell the next one who waits for a name that it is free; and the one after him, if he makes no use of it."""
        line = self._lines.get(name)
        if not line:
            self._lines.pop(name, None)
        elif name not in self._under_way and not self._closing:
            done = next(iter(line))
            del line[done]
            done()
            if line:
                asyncio.get_running_loop().call_later(TURN, self._next_in_line, name)

    async def _succeeds(self, names: tuple[str, ...], step: Step, last: Outcome | None) -> bool:
        work = names[0]
        try:
            completed = await self._perform(step)
        except CommandHung as error:
            self._remember(work, step, last, None, str(error), hung=True)
            await self._outlast(names, step, error)
            return False
        except (QuorateError, OSError) as error:
            self._remember(work, step, last, None, str(error) or type(error).__name__)
            return False
        except Exception:
            log.exception("exception in our own code", work=work, step=words(step))
            why = f"{words(step)}: failed by a mistake of the agent, which is in its log"
            self._remember(work, step, last, None, why)
            return False
        accepted = completed.exit_code in (step.accept if isinstance(step, Run) else (0,))
        self._remember(work, step, last, completed.exit_code, completed.output, failed=not accepted)
        return accepted

    async def _perform(self, step: Step) -> Completed:
        match step:
            case Run():
                self._refuse_to_part(step)
                # Before: a look that is under way now may miss it. After: one made meanwhile may have come too early.
                self._mark_changes(step)
                try:
                    return await self.run(*step.argv, silence=step.silence, stdin=step.stdin)
                finally:
                    self._mark_changes(step)
            case WriteFile():
                marks = self._mark_file(step.path)
                await self._machine.write_file(step.path, step.content.encode())
                self._memory.file(step.path).saw(step.content, marks=marks)
            case MoveFile():
                source, destination = self._memory.file(step.source), self._memory.file(step.destination)
                text, known = source.value, source.current
                gone, come = self._mark_file(step.source), self._mark_file(step.destination)
                await self._machine.move_file(step.source, step.destination)
                source.saw(None, marks=gone)
                if known:
                    destination.saw(text, marks=come)
            case RemoveFile():
                # One that nobody has looked at need not be remembered as gone.
                seen = self._memory.files.get(step.path)
                marks = self._mark_file(step.path) if seen is not None else 0
                await self._machine.remove_file(step.path)
                if seen is not None:
                    seen.saw(None, marks=marks)
            case Look():
                if step.after:
                    await self._clock.sleep(step.after)
                await self.lookers[step.at](step.subject)
        return Completed(0, "")

    def _refuse_to_part(self, step: Run) -> None:
        """The last word about links: whoever wants a command, it is not run if it erases what tells of a stale copy."""
        for resource in (each.removeprefix(KERNEL_PREFIX) for each in step.changes if each.startswith(KERNEL_PREFIX)):
            seen = self._memory.kernel.get(resource)
            rules = self._memory.link_rules.get(resource, LinkRules())
            if not step.despite_marks and seen is not None and would_part(step.argv, seen.value, rules):
                raise LinksKept(
                    f"not run: {words(step)}: copies of {resource} that are UpToDate may differ, and making their links"
                    " anew would erase what tells so; it is run when they have been compared"
                )

    def _mark_changes(self, step: Step) -> None:
        for change in step.changes if isinstance(step, Run) else ():
            self._memory.mark(change)

    def _mark_file(self, path: str) -> int:
        sighting = self._memory.file(path)
        sighting.mark()
        return sighting.marks

    async def _outlast(self, names: tuple[str, ...], step: Step, error: CommandHung) -> None:
        """Hold the name of the work until the hung command has ended; who waits for it is told that it hangs."""
        log.warning("a command hangs", work=names[0], command=words(step), error=str(error))
        self._hung[names[0]] = words(step)
        for done in {done: None for name in names for done in (*self._under_way[name], *self._lines.get(name, ()))}:
            done()
        while error.still_there() and not self._closing:
            await self._clock.sleep(HUNG_POLL)
        self._mark_changes(step)  # who looked while it hung came too early

    def _remember(
        self,
        work: str,
        step: Step,
        last: Outcome | None,
        exit_code: int | None,
        output: str,
        *,
        failed: bool = True,
        hung: bool = False,
    ) -> None:
        """Keep an outcome; ``last`` is that of the attempt before."""
        earlier = last if last is not None and last.about == step.about else None
        outcome = Outcome(
            purpose=step.purpose,
            about=step.about,
            command=words(step),
            at=self._clock.now(),
            exit_code=exit_code,
            output=output,
            failures=(1 + (earlier.failures if earlier else 0)) if failed else 0,
            times=1 + (earlier.times if earlier else 0),
            hung=hung,
        )
        self._memory.remember(work, outcome)
        _tell(work, outcome, last)


def _tell(work: str, outcome: Outcome, last: Outcome | None) -> None:
    """Have a failure in the log when it is new; one that only repeats itself is counted, until that is over."""
    repeated = last is not None and not last.succeeded and last.command == outcome.command
    if outcome.succeeded:
        if last is not None and repeated:
            log.info("a command works again", work=work, command=outcome.command, failures=last.failures)
    elif not outcome.hung and not (last is not None and repeated and _kind(last) == _kind(outcome)):
        log.warning(
            "a command failed",
            work=work,
            command=outcome.command,
            exit_code=outcome.exit_code,
            said=_last_words(outcome),
            failures=outcome.failures,
        )


def _kind(outcome: Outcome) -> tuple[int | None, str]:
    """What makes two failures the same: not the number of a process, or a percentage."""
    return outcome.exit_code, _NUMBERS.sub("0", _last_words(outcome))


def _last_words(outcome: Outcome) -> str:
    """The last line that it said, without secrets: they are masked before the line is cut out of the text."""
    lines = presentable(outcome.output).splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
