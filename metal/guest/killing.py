"""At which commands an agent dies: once before and once after each new one that changes something."""

from __future__ import annotations

#: Commands that only look.
_LOOKS = (
    ("drbdsetup", "status"),
    ("drbdsetup", "events2"),
    ("drbdsetup", "show"),
    ("drbdadm", "sh-"),
    ("drbdadm", "--version"),
    ("drbdadm", "dump"),
)
_LOOKERS = ("lsblk", "lvs", "vgs", "pvs", "smartctl", "true", "uname", "blkid", "udevadm", "modinfo", "dmesg", "test")


def changes(argv: tuple[str, ...]) -> bool:
    """Whether a command is meant to change something."""
    name = argv[0].rpartition("/")[2]
    words = [word for word in argv[1:] if not word.startswith("-") or word == "--version"]
    if name in _LOOKERS or not words:
        return False
    if name == "lvm":
        return words[0] not in _LOOKERS
    if name == "drbdadm":
        # The files that it is given stand before the command.
        words = [word for word in words if not word.startswith("/")] or words
    return not any(name == looker and words[0].startswith(begin) for looker, begin in _LOOKS)


class Killing:
    """Of one node's agent, over its lives."""

    def __init__(self, died: tuple[str, ...] = ()) -> None:
        #: Where it has died so far, in order.
        self.died: list[str] = list(died)

    def dies_before(self, argv: tuple[str, ...]) -> bool:
        """Whether it dies now, before the command; noted if so."""
        return changes(argv) and self._once(f"before {' '.join(argv)}")

    def dies_after(self, argv: tuple[str, ...]) -> bool:
        """The same, after it."""
        return changes(argv) and self._once(f"after {' '.join(argv)}")

    def _once(self, what: str) -> bool:
        if what in self.died:
            return False
        self.died.append(what)
        return True
