"""Where a node's directories really are: in a container, the host's ``/sys`` may be mounted at ``/host/sys``."""

from __future__ import annotations

import posixpath
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
        """Where we find what the node calls ``path``; of directories within each other, the innermost decides.

        ``..`` after a symbolic link is the parent of what the link stands for, as everywhere (sysfs is full of such
        links). It may not lead out of the directory that decides.
        """
        wanted = PurePosixPath(path)
        plain = _checked(posixpath.normpath(path))
        root, place = self._root_of(plain)
        if not path.startswith("/") or ".." in wanted.parts[: len(root.parts) + 1] or self._root_of(wanted)[0] != root:
            raise _refused(path)
        return str(PurePosixPath(place) / wanted.relative_to(root))

    def _root_of(self, path: PurePosixPath) -> tuple[PurePosixPath, str]:
        """Which directory decides where a path is, and where that is. Where none does, its topmost one."""
        for ancestor in (path, *path.parents):
            place = self.places.get(str(ancestor))
            if place is not None:
                return ancestor, place
        top = PurePosixPath(*path.parts[:2])
        return top, str(top)


def _checked(path: str) -> PurePosixPath:
    checked = PurePosixPath(path)
    if not checked.is_absolute() or ".." in checked.parts or str(checked).startswith("//"):
        raise _refused(path)
    return checked


def _refused(path: str) -> ValueError:
    return ValueError(f"{path!r} cannot be used as a path: it must begin with one / and no .. may lead elsewhere")
