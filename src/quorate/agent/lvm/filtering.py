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
    return (program, "--config", f'devices{{filter=["{WITHOUT_DRBD}"]}}', *arguments)
