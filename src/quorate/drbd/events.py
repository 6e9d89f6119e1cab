"""``drbdsetup events2 --timestamps``, line by line: only a wake-up, the truth is in ``status``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One line."""

    #: exists, create, change, destroy, rename, call, response.
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
    raise NotImplementedError
