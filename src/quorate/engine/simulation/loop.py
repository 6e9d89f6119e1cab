"""The event loop: asyncio's, with virtual time and a seeded choice of what runs next.

asyncio promises that callbacks given to ``call_soon`` run in the order in which they were registered, and promises
nothing about the order of tasks. We keep the promise and draw lots for the rest: at each step the candidates are

- the next step of every runnable task (a task has at most one, so what one task does stays in order), and
- the oldest of the other callbacks (``call_soon``, done callbacks, timers), which stay in order among themselves.

A timer runs when virtual time reaches it, after everything that was set for an earlier instant. Running code takes
no time. Python's hash of a task is its address, which would make the order in which ``asyncio.TaskGroup`` cancels
its children depend on the memory allocator; our tasks hash to their serial number instead.

From ``asyncio.BaseEventLoop`` (3.11 to 3.13) this uses ``_ready``, ``_scheduled``, ``_timer_cancelled_count``,
``_stopping`` and ``_run_once``; the tests of this package fail if a new Python changes them.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import struct
import threading
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextvars import Context
from random import Random
from typing import Any, NoReturn, TypeVarTuple

from quorate.engine.simulation.errors import Deadlock, OutsideSimulation, Stuck
from quorate.engine.simulation.process import CURRENT
from quorate.engine.simulation.tasks import SimulatedTask, describe

Ts = TypeVarTuple("Ts")

#: Callbacks that may run at one instant of virtual time before we call it a busy loop.
MAX_STEPS_PER_INSTANT = 1_000_000

_choice = struct.Struct("<dII")


class _Ready:
    """The runnable callbacks, in place of BaseEventLoop's deque."""

    def __init__(self) -> None:
        self.steps: list[asyncio.Handle] = []
        self.others: deque[asyncio.Handle] = deque()

    def append(self, handle: asyncio.Handle) -> None:
        process = _context_of(handle).get(CURRENT)
        if process is not None and not process.running:
            process.parked.append(handle)
        elif isinstance(getattr(_callback_of(handle), "__self__", None), asyncio.Task):
            self.steps.append(handle)
        else:
            self.others.append(handle)

    def take(self, choice: int) -> asyncio.Handle:
        """The candidate with this number; the last candidate is the oldest of the other callbacks, if there are any."""
        if choice == len(self.steps):
            return self.others.popleft()
        chosen = self.steps[choice]
        last = self.steps.pop()
        if last is not chosen:
            self.steps[choice] = last
        return chosen

    @property
    def candidates(self) -> int:
        return len(self.steps) + bool(self.others)

    def sort(self) -> None:
        """Look at every callback again: those whose process has stopped are handed over to it."""
        waiting = [*self.others, *self.steps]
        self.clear()
        for handle in waiting:
            self.append(handle)

    def clear(self) -> None:
        self.steps.clear()
        self.others.clear()

    def __len__(self) -> int:
        return len(self.steps) + len(self.others)


class SimulationLoop(asyncio.BaseEventLoop):
    """See the module's docstring. Use it through :func:`quorate.engine.simulation.run`."""

    # BaseEventLoop's own, which its type stubs leave out.
    _ready: _Ready
    _scheduled: list[asyncio.TimerHandle]
    _timer_cancelled_count: int
    _stopping: bool

    def __init__(self, *, seed: int, limit: float) -> None:
        super().__init__()
        self._ready = _Ready()
        self._random = Random(f"order of events/{seed}")
        self._now = 0.0
        self._limit = limit
        self._steps = 0
        self._tasks_made = 0
        self._tasks: weakref.WeakValueDictionary[int, SimulatedTask] = weakref.WeakValueDictionary()
        self._thread = threading.get_ident()
        self._fingerprint = hashlib.blake2b(digest_size=16)
        self._unhandled: list[tuple[str, BaseException | None]] = []
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._note_unhandled)

    def time(self) -> float:
        return self._now

    def fingerprint(self) -> str:
        """A digest of every choice made so far, with its virtual time: equal for equal histories."""
        return self._fingerprint.hexdigest()

    def unfinished(self) -> list[SimulatedTask]:
        """Tasks that are not done, oldest first."""
        return [task for task in self._all_tasks() if not task.done()]

    def unhandled(self) -> list[tuple[str, BaseException | None]]:
        """Errors that nobody looked at. asyncio tells of them when a task is collected, which may be never: we look."""
        unseen = [task for task in self._all_tasks() if task.done() and task._log_traceback and not task.killed]
        return [*self._unhandled, *((f"{task!r} failed and nobody looked", task.exception()) for task in unseen)]

    def allow_more(self, seconds: float) -> None:
        """Set the limits anew, from now."""
        self._limit = self._now + seconds
        self._steps = 0

    def park(self) -> None:
        """Take the callbacks of processes that have stopped out of the run queue."""
        self._ready.sort()

    def unpark(self, handles: Iterable[asyncio.Handle]) -> None:
        """Make callbacks runnable again."""
        for handle in handles:
            self._ready.append(handle)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> SimulatedTask:
        self._tasks_made += 1
        task = self._tasks[self._tasks_made] = SimulatedTask(coroutine, loop=loop, serial=self._tasks_made, **options)
        return task

    def _all_tasks(self) -> list[SimulatedTask]:
        """Those that are still in memory, oldest first."""
        return sorted(self._tasks.values(), key=hash)

    def _note_unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._unhandled.append((context["message"], context.get("exception")))

    def _run_once(self) -> None:
        """One callback: the seed's choice among the candidates, at the earliest instant that has any."""
        self._promote_timers()
        if not self._ready:
            if self._stopping:
                return
            self._advance()
        self._steps += 1
        if self._steps > MAX_STEPS_PER_INSTANT:
            raise Stuck(f"{self._steps} callbacks ran while the clock stood at {self._now:.6f} s.{self._who_waits()}")
        candidates = self._ready.candidates
        choice = int(self._random.random() * candidates)
        self._fingerprint.update(_choice.pack(self._now, candidates, choice))
        handle = self._ready.take(choice)
        if not handle.cancelled():
            handle._run()

    def _promote_timers(self) -> None:
        """Timers that are due become runnable; cancelled ones are dropped, as BaseEventLoop does it."""
        timers = self._scheduled
        if self._timer_cancelled_count > 100 and self._timer_cancelled_count * 2 > len(timers):
            timers[:] = [timer for timer in timers if not timer.cancelled()]
            heapq.heapify(timers)
            self._timer_cancelled_count = 0
        while timers and (timers[0].cancelled() or timers[0].when() <= self._now):
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(timer)

    def _advance(self) -> None:
        """Jump to the next timers until one of them makes something runnable."""
        while not self._ready:
            if not self._scheduled:
                raise Deadlock(f"nothing can run any more at {self._now:.6f} s.{self._who_waits()}")
            self._now = self._scheduled[0].when()
            self._steps = 0
            if self._now > self._limit:
                raise Stuck(f"not done after {self._limit:g} s of virtual time.{self._who_waits()}")
            self._promote_timers()

    def _who_waits(self) -> str:
        return "".join(f"\n  {describe(task)}" for task in self.unfinished())

    def _asyncgen_finalizer_hook(self, generator: AsyncGenerator[Any, Any]) -> None:
        # When the collector runs is no part of the seed, so leaving the closing to it would break determinism.
        message = f"{generator!r} was left to the garbage collector: close it with contextlib.aclosing"
        self.call_exception_handler({"message": message})

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread:
            raise OutsideSimulation(f"{callback!r} was called from another thread")
        return self.call_soon(callback, *args, context=context)


def _callback_of(handle: asyncio.Handle) -> Any:
    return handle._callback  # type: ignore[attr-defined]


def _context_of(handle: asyncio.Handle) -> Any:
    return handle._context  # type: ignore[attr-defined]


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refused(*_args: object, **_options: object) -> NoReturn:
        raise OutsideSimulation(
            f"loop.{name}: a simulation has no sockets, threads, processes or signals; "
            "put what needs them behind an interface and inject a simulated one"
        )

    refused.__name__ = name
    return refused


for _name in (
    *("run_in_executor", "getaddrinfo", "getnameinfo", "subprocess_exec", "subprocess_shell"),
    *("create_connection", "create_server", "create_datagram_endpoint", "connect_accepted_socket"),
    *("create_unix_connection", "create_unix_server", "connect_read_pipe", "connect_write_pipe"),
    *("sock_accept", "sock_connect", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into"),
    *("sock_sendall", "sock_sendfile", "sock_sendto", "sendfile", "start_tls"),
    *("add_reader", "remove_reader", "add_writer", "remove_writer", "add_signal_handler", "remove_signal_handler"),
):
    setattr(SimulationLoop, _name, _refuse(_name))
