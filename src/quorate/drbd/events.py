"""``drbdsetup events2 --timestamps``, line by line: only a wake-up, the truth is in ``status``.

A line that cannot be read wakes nobody and is no error: the next look at the status makes up for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VERBS: Final = frozenset({"exists", "create", "change", "destroy", "rename", "call", "response"})


@dataclass(frozen=True, slots=True)
class Event:
    """One line."""

    #: One of VERBS.
    verb: str
    #: resource, device, connection, peer-device, path, helper; ``-`` ends the dump of what exists already.
    kind: str
    #: The resource; empty where the line names none.
    resource: str
    fields: Mapping[str, str]

    @property
    def ends_dump(self) -> bool:
        """Everything that existed when the stream began has been told."""
        return self.verb == "exists" and self.kind == "-"


def parse_event(line: str) -> Event | None:
    """The event of a line, with or without a timestamp; None for what is not one."""
    words = line.split()
    if words and words[0] not in VERBS:
        words = words[1:]
    if len(words) < 2 or words[0] not in VERBS:
        return None
    verb, kind, *rest = words
    # A value may have colons of its own: peer:ipv4:10.77.0.2:7000.
    fields = {name: value for name, colon, value in (word.partition(":") for word in rest) if colon}
    return Event(verb, kind, fields.get("name", ""), fields)
