"""``drbdsetup events2``: what exists now, and then every change as it happens.

``--timestamps`` puts the time first, ``--statistics`` (or ``--full``) keeps the counters, ``--now`` stops after what
exists. A resource's name narrows it to that one.
"""

from __future__ import annotations

import datetime
import functools

from quorate.lab.kernel.events import Event
from quorate.lab.tools.arguments import Arguments
from quorate.lab.tools.process import Process, Program, Wait

_COUNTERS = frozenset(
    {
        *("write-ordering", "size", "read", "written", "al-writes", "bm-writes", "upper-pending", "lower-pending"),
        *("al-suspended", "blocked", "congested", "ap-in-flight", "rs-in-flight"),
        *("received", "sent", "out-of-sync", "pending", "unacked"),
    }
)


def events2(process: Process, arguments: Arguments) -> Program:
    """The stream; it ends only when it is killed, or with ``--now``."""
    counters = arguments.has("statistics") or arguments.has("full")
    stamped = arguments.has("timestamps")
    name = arguments.rest[0] if arguments.rest and arguments.rest[0] != "all" else None

    def say(event: Event) -> None:
        shown = _narrowed(event, name, counters)
        if shown is not None:
            process.out(f"{_stamp(process.host.wall_clock())} {shown}\n" if stamped else f"{shown}\n")

    for event in process.host.kernel.dump():
        say(event)
    if arguments.has("now"):
        return 0
    stop = process.host.kernel.subscribe(say)
    try:
        yield Wait(lambda _resume: None)  # until somebody ends it
    finally:
        stop()
    return 0


@functools.lru_cache(maxsize=1)
def _stamp(moment: float) -> str:
    """A moment is told of in several lines."""
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec="microseconds")


def _narrowed(event: Event, name: str | None, counters: bool) -> Event | None:
    """The event as it is asked for; None if nothing of it is."""
    if name is not None and event.key != "-" and f"name:{name}" not in event.key.split(" "):
        return None
    if counters:
        return event
    kept = {field: value for field, value in event.fields.items() if field not in _COUNTERS}
    return event._replace(fields=kept) if kept or event.verb != "change" else None
