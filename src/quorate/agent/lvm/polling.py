"""Looks at logical volumes now and then, although nothing should have been missed: other tools change LVM too.

Groups and their devices are looked at in every tenth round only: what changes them changes volumes or drives as well,
and either makes the ``looker`` look at groups.
"""

from __future__ import annotations

from typing import Final

from quorate.agent.lvm.looker import GROUPS, GROUPS_LOOK
from quorate.agent.node import LVM_LOOK, Node, Wake
from quorate.agent.steps import LVM, Look
from quorate.engine import Key

#: Seconds between two rounds.
INTERVAL: Final = 60.0
#: Groups are looked at in every so-manieth.
GROUPS_EVERY: Final = 10


async def poll(node: Node, groups_key: Key) -> None:
    """Never returns."""
    done, rounds = Wake(node.disks, groups_key), 0
    while True:
        await node.clock.sleep(INTERVAL)
        rounds += 1
        node.hands.start(LVM_LOOK, (Look(LVM),), done)
        if rounds % GROUPS_EVERY == 0:
            node.hands.start(GROUPS_LOOK, (Look(LVM, GROUPS),), done)
