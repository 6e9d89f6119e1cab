"""``drbdsetup events2``: what exists now, and then every change as it happens.

``--timestamps`` puts the time first, ``--statistics`` (or ``--full``) keeps the counters, ``--now`` stops after what
exists. A resource's name narrows it to that one.
"""

from __future__ import annotations

import datetime

from quorate.lab.tools.arguments import Arguments
from quorate.lab.tools.process import Process, Program, Wait

_COUNTERS = frozenset(
    {
        *("write-ordering", "size", "read", "written", "al-writes", "bm-writes", "upper-pending", "lower-pending"),
        *("al-suspended", "blocked", "congested", "ap-in-flight", "rs-in-flight"),
        *("received", "sent", "out-of-sync", "pending", "unacked"),
    }
)
_IDENTITY = frozenset({"name", "peer-node-id", "conn-name", "volume", "minor", "local", "peer"})


def events2(process: Process, arguments: Arguments) -> Program:
    """The stream; it ends only when it is killed, or with ``--now``."""
    counters = arguments.has("statistics") or arguments.has("full")
    stamped = arguments.has("timestamps")
    name = arguments.rest[0] if arguments.rest and arguments.rest[0] != "all" else None

    def say(line: str) -> None:
        shown = _narrowed(line, name, counters)
        if shown is not None:
            process.out(f"{_stamp(process)} {shown}\n" if stamped else f"{shown}\n")

    for line in process.host.kernel.dump():
        say(line)
    if arguments.has("now"):
        return 0
    stop = process.host.kernel.subscribe(say)
    try:
        yield Wait(lambda _resume: None)  # until somebody ends it
    finally:
        stop()
    return 0


def _stamp(process: Process) -> str:
    moment = datetime.datetime.fromtimestamp(process.host.wall_clock(), datetime.UTC)
    return moment.isoformat(timespec="microseconds")


def _narrowed(line: str, name: str | None, counters: bool) -> str | None:
    """The line as it is asked for; None if nothing of it is."""
    verb, _, rest = line.partition(" ")
    kind, *fields = rest.split(" ")
    if name is not None and kind != "-" and f"name:{name}" not in fields:
        return None
    if counters or not fields:
        return line
    kept = [field for field in fields if field.partition(":")[0] not in _COUNTERS]
    if verb == "change" and all(field.partition(":")[0] in _IDENTITY for field in kept):
        return None
    return " ".join((verb, kind, *kept))
