"""Commands that hang in the kernel, where no signal reaches them: told in the node's inventory.

The hands hold the name of such work until the process is gone, so there is never a second one for the same resource or
disk, and everything else goes on. But what hangs for a minute will mostly hang until the next boot, and what is asked
of the node next may hang as well. So the node takes nothing new, and people are told to drain and reboot it
(``KernelStuck`` of the longhorn Node). One that ends after all is forgotten at once. What takes its time by nature
(making metadata, copying) does not count, and a drive that does not answer to questions is that drive's affair.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final, NoReturn

from quorate.agent.hands import UnderWay
from quorate.agent.node import Node
from quorate.api import longhorn, names
from quorate.api.longhorn.node import MAX_STUCK, StuckCommand
from quorate.api.meta import Resource
from quorate.api.struct import replace
from quorate.engine import Controller, Key, PatchStatus, Plan, Reader, Watch

#: Seconds after which a command counts as stuck; how often it is looked for those.
PATIENCE: Final = 50.0
_INTERVAL: Final = 5.0
_KEY: Final = Key("", "stuck")
#: What ends within seconds, or hangs by the kernel's fault and not by that of one drive…
_SOON_OVER: Final = frozenset(
    (
        *("drbdadm", "drbdsetup", "dmsetup", "lvs", "lvcreate", "lvremove", "lvextend", "lvchange", "lvreduce"),
        *("vgs", "vgcreate", "vgremove", "vgextend", "vgreduce", "vgchange", "pvs", "pvcreate", "pvremove"),
    )
)
#: … but for this: it writes all of a bitmap.
_SLOW: Final = "create-md"


@dataclass(frozen=True, slots=True)
class StuckView:
    """The node's inventory, and what hangs."""

    inventory: longhorn.Node
    running: Mapping[str, UnderWay]


def decide(view: StuckView, now: datetime, _: Random) -> Plan:
    """Tell what has hung for long enough, and that it does no more."""
    stuck = tuple(
        StuckCommand(work=work[:300], command=each.command[:512], since=each.since)
        for work, each in sorted(view.running.items(), key=lambda item: (item[1].since, item[0]))
        if _is_stuck(each, now)
    )[:MAX_STUCK]
    reported = replace(view.inventory.status, stuck_commands=stuck)
    return Plan(
        status=PatchStatus(view.inventory, replace(view.inventory, status=reported)),
        requeue_after=_INTERVAL if stuck else None,
    )


def _is_stuck(running: UnderWay, now: datetime) -> bool:
    program, *rest = running.command.split() or [""]
    return program in _SOON_OVER and _SLOW not in rest and (now - running.since).total_seconds() >= PATIENCE


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """One key: all that hangs on the node."""

    def observe(reader: Reader, _: Key) -> StuckView | None:
        inventory = reader.get(longhorn.Node, node.name, names.NAMESPACE)
        return StuckView(inventory, node.hands.running) if inventory is not None else None

    return (
        Controller(
            name="kernel-stuck",
            watches=(Watch(longhorn.Node, _the_key, when=_differs),),
            observe=observe,
            decide=decide,
            signals=(node.disks.only(lambda key: key == _KEY),),
            always=(_KEY,),
            workers=1,
        ),
    )


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """Look for what hangs: nothing else tells of it."""
    return (_keep_looking(node),)


async def _keep_looking(node: Node) -> NoReturn:
    while True:
        await node.clock.sleep(_INTERVAL)
        if any(_is_stuck(each, node.clock.now()) for each in node.hands.running.values()):
            node.disks.wake(_KEY)


def _the_key(_: Resource) -> Iterable[Key]:
    return (_KEY,)


def _differs(before: longhorn.Node | None, after: longhorn.Node | None) -> bool:
    return before is None or after is None or before.status.stuck_commands != after.status.stuck_commands
