"""What goes with every command of LVM: it must never read a DRBD device.

One that is primary and has no quorum does not answer, and a command that reads it hangs for as long. What is on a
DRBD device is a user's besides, and no business of this node's LVM. ``quorate agent --check`` asks for the same in the
host's own configuration, which is for the commands of others.
"""

from __future__ import annotations

from typing import Final

#: A pattern of LVM that refuses DRBD's devices, under any of their names.
WITHOUT_DRBD: Final = "r|^/dev/drbd.*|"


def lvm(program: str, *arguments: str) -> tuple[str, ...]:
    """The command line."""
    return _configured(program, arguments, "")


def lvm_without_discards(program: str, *arguments: str) -> tuple[str, ...]:
    """The same, for what gives extents back: what is on them stays, however LVM is set up.

    Extents that a drive was told to forget read as it pleases. Zeros must stay zeros, and what a person may need again
    must stay what it is.
    """
    return _configured(program, arguments, " issue_discards=0")


def _configured(program: str, arguments: tuple[str, ...], more: str) -> tuple[str, ...]:
    return (program, "--config", f'devices{{filter=["{WITHOUT_DRBD}"]{more}}}', *arguments)
