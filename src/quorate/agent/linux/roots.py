"""Where a node's directories really are: in a container, the host's ``/sys`` may be mounted at ``/host/sys``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Roots:
    """Directories of the node, and where each is for us. What is under none of them is where it says it is."""

    places: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in (*self.places, *self.places.values()):
            _checked(path)

    def locate(self, path: str) -> str:
        """Where we find what the node calls ``path``; of directories within each other, the innermost decides."""
        wanted = _checked(path)
        for ancestor in (wanted, *wanted.parents):
            place = self.places.get(str(ancestor))
            if place is not None:
                return str(PurePosixPath(place) / wanted.relative_to(ancestor))
        return str(wanted)


def _checked(path: str) -> PurePosixPath:
    checked = PurePosixPath(path)
    if not checked.is_absolute() or ".." in checked.parts or str(checked).startswith("//"):
        raise ValueError(f"{path!r} cannot be used as a path: it must begin with one / and have no .. in it")
    return checked
