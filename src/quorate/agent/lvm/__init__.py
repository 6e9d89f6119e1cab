"""LVM on the node: volume groups reported, and made of clean drives where asked; logical volumes made, grown, removed.

``looker`` is the one pair of eyes; ``report`` reads what LVM prints, ``seen`` holds it. ``logical_volumes`` composes
the decisions ``creating``, ``growing`` and ``removing``, each a pure function of a ``piece``; ``groups`` and ``pools``
decide about the volume groups. ``commands`` has every command line, ``filtering`` what goes with each, ``heavy`` starts
those that take hours; ``detaching`` makes a drive ready to be pulled. Volumes without an owner are told of in
``quorate.agent.orphans``.

What must survive a crash is in LVM's own tags, changed in single commands: ``quorate.new`` while the contents are not
yet as they must be, ``quorate.llv=<uid>`` and ``quorate.for=<uid>`` for which object and for which replica it was made,
``quorate.volume=<name>`` of which volume it is a part, ``quorate.zero`` where every unwritten byte is zero,
``quorate.end=<bytes>`` where DRBD's metadata may still be. So a killed agent, a lost status, and a lost object cost
nothing but doing the last thing again.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from quorate.agent.lvm.detachments import Detachments
from quorate.agent.lvm.logical_volumes import LogicalVolumes
from quorate.agent.lvm.looker import Looker
from quorate.agent.lvm.polling import poll
from quorate.agent.lvm.volume_groups import VolumeGroups
from quorate.agent.node import Node
from quorate.engine import Controller, Key

#: All volume groups of a node are one key: they are few, share their looks, and compete for the same drives.
GROUPS_KEY: Final = Key("", "lvm/groups")


def controllers(node: Node) -> tuple[Controller[Any], ...]:
    """What the manager runs."""
    looker = Looker(node, GROUPS_KEY)
    return (
        LogicalVolumes(node, looker, GROUPS_KEY).controller(),
        VolumeGroups(node, looker, GROUPS_KEY).controller(),
        Detachments(node, looker, GROUPS_KEY).controller(),
    )


def tasks(node: Node) -> tuple[Coroutine[Any, Any, None], ...]:
    """What runs for as long as the agent does."""
    return (poll(node, GROUPS_KEY),)
