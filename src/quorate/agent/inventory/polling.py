"""Looks at the drives every minute, and asks each how it is every ten: ``smartctl`` wakes disks and takes its time."""

from __future__ import annotations

from typing import Final

from quorate.agent.inventory.looker import SMART, SMART_LOOK, nobody
from quorate.agent.node import DRIVES_LOOK, Node
from quorate.agent.steps import DRIVES, Look

#: Seconds between two looks.
INTERVAL: Final = 60.0
#: Drives are asked how they are in every so-manieth.
SMART_EVERY: Final = 10


async def poll(node: Node) -> None:
    """Never returns. The lookers wake whom a change concerns."""
    rounds = 0
    while True:
        await node.clock.sleep(INTERVAL)
        rounds += 1
        node.hands.start(DRIVES_LOOK, (Look(DRIVES),), nobody)
        if rounds % SMART_EVERY == 0:
            node.hands.start(SMART_LOOK, (Look(SMART),), nobody)
