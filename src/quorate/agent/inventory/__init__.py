"""What the node has: its drives, how they are, and the node itself.

``lsblk`` and ``smart`` read what two tools print, ``sysfs`` where drives sit; ``discovery`` says which block devices
are drives and who they are; ``looker`` looks, now and then (``polling``) and when asked. ``drives`` keeps the Drive
objects like that. Nothing is ever deleted: a drive that is gone is OFFLINE; what that means others decide.

``registration`` makes the core Node where no kubelet does: on the embedded engine. It is a part of its own.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from quorate.agent.inventory.drives import DRIVES_KEY, Drives
from quorate.agent.inventory.looker import Looker
from quorate.agent.inventory.polling import poll
from quorate.agent.node import Node
from quorate.engine import Controller, Signal


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """What the manager runs."""
    signal = Signal()
    looker = Looker(node, signal, DRIVES_KEY)
    return (Drives(node.name, looker, signal).controller(),)


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """What runs for as long as the agent does."""
    return (poll(node),)
