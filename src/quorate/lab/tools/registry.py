"""Every program of a simulated node, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.lab.tools import conditions, control, devices, files, lsblk, smartctl, system, text
from quorate.lab.tools.dd import dd
from quorate.lab.tools.dmsetup import dmsetup
from quorate.lab.tools.drbd.adm import drbdadm
from quorate.lab.tools.drbd.meta import drbdmeta
from quorate.lab.tools.drbd.setup import drbdsetup
from quorate.lab.tools.lvm import umbrella
from quorate.lab.tools.process import Process, Program

Tool = Callable[[Process, list[str]], Program | int]

TOOLS: Mapping[str, Tool] = {
    "drbdadm": drbdadm,
    "drbdsetup": drbdsetup,
    "drbdmeta": drbdmeta,
    "lvm": umbrella.lvm,
    **umbrella.COMMANDS,
    "dmsetup": dmsetup,
    "lsblk": lsblk.lsblk,
    "smartctl": smartctl.smartctl,
    "ledctl": system.ledctl,
    "blockdev": devices.blockdev,
    "wipefs": devices.wipefs,
    "blkdiscard": devices.blkdiscard,
    "dd": dd,
    "sh": control.sh,
    "echo": control.echo,
    "true": control.true,
    ":": control.true,
    "false": control.false,
    "sleep": control.sleep,
    "timeout": control.timeout,
    "kill": control.kill,
    "cat": files.cat,
    "mv": files.mv,
    "rm": files.rm,
    "ls": files.ls,
    "mkdir": files.mkdir,
    "touch": files.touch,
    "sync": files.sync,
    "cmp": files.cmp,
    **{f"{name}sum": files.checksum(name) for name in ("md5", "sha1", "sha256", "sha512")},
    "grep": text.grep,
    "head": text.head,
    "tail": text.tail,
    "wc": text.wc,
    "cut": text.cut,
    "test": conditions.test,
    "[": conditions.test,
    "uname": system.uname,
    "hostname": system.hostname,
    "dmesg": system.dmesg,
    "modprobe": system.modprobe,
    "modinfo": system.modinfo,
    "udevadm": system.udevadm,
    "reboot": system.reboot,
    "poweroff": system.reboot,
    "busybox": system.busybox,
}
