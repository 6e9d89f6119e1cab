"""``lvm COMMAND``: the one program behind all the others."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.lab.tools.lvm import change, report
from quorate.lab.tools.process import Process

_VERSION = "  LVM version:     2.03.16(2) (2022-05-18)\n  Library version: 1.02.185 (2022-05-18)\n"

COMMANDS: Mapping[str, change.Command] = {
    "lvcreate": change.lvcreate,
    "lvextend": change.lvextend,
    "lvreduce": change.lvreduce,
    "lvresize": change.lvresize,
    "lvremove": change.lvremove,
    "lvchange": change.lvchange,
    "vgcreate": change.vgcreate,
    "vgextend": change.vgextend,
    "vgreduce": change.vgreduce,
    "vgremove": change.vgremove,
    "pvcreate": change.pvcreate,
    "pvremove": change.pvremove,
    "vgs": report.vgs,
    "lvs": report.lvs,
    "pvs": report.pvs,
}


def lvm(process: Process, argv: list[str]) -> int:
    """The command line."""
    if argv[1:2] == ["version"]:
        process.out(_VERSION)
        return 0
    command = COMMANDS.get(argv[1]) if len(argv) > 1 else None
    if command is None:
        process.err("  No such command.  Try 'help'.\n")
        return 2
    return command(process, argv[1:])
