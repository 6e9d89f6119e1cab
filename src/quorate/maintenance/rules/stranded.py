"""What whoever may take a host down is told of its users, before they begin.

Uses that cannot move away: a volume in use on a host that may go down, with nowhere else to be written to meanwhile.
The permission is given, because the use ends with its host. But once it is held no attachment elsewhere is made that
could not be written to without that host (``quorate.volumes.attach.permissions``): a drain would wait for the
permission to end.

Uses that cannot end: a device in use whose I/O is suspended. The machine's last sync waits for its dirty pages, for
ever, if nobody fails the device before (``quorate.agent.shutdown``).

Commands that hang in a host's kernel: only its reboot ends them, and it may have to be forced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.maintenance.messages import Action
from quorate.maintenance.model.cluster import ClusterModel
from quorate.maintenance.model.items import GroupItem, Item, NodeItem, VDiskItem
from quorate.maintenance.model.lookup import Unresolved, find
from quorate.maintenance.rules.volumes import is_writable

#: So many are named; of the others it is said how many there are.
_NAMED: Final = 5


def stranded_note(model: ClusterModel, permitted: Iterable[Action]) -> str:
    """For the person who is granted these actions; empty: whatever uses a volume there can be moved."""
    nodes = [node for action in permitted for node in _nodes(model, action)]
    leaving = {node.id: node for node in nodes}
    volumes = {
        part.group.info.id: part.group for node in nodes for part in node.vdisks if part.group.volume is not None
    }
    told = [_told(group, leaving) for group in volumes.values() if _is_stranded(group, leaving.keys())]
    if not told:
        return ""
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return (
        f"in use, and writable nowhere else while this may go down: {', '.join(told[:_NAMED])}{more}. What uses it can"
        " be stopped, but not moved, until the permission is given back; to keep it running, give this back, evacuate"
        " the host, and ask again"
    )


def suspended_note(model: ClusterModel, permitted: Iterable[Action]) -> str:
    """For the person who is granted these actions; empty: nothing there keeps a machine from ending."""
    told = {
        f"{part.group.label} on {node.name}": None
        for action in permitted
        for node in _nodes(model, action)
        for part in node.vdisks
        if part.group.volume is not None and node.id in part.group.volume.suspended_on
    }
    if not told:
        return ""
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return (
        f"I/O stands still: {', '.join(list(told)[:_NAMED])}{more}. With unwritten data there, `reboot -f` never ends:"
        " use `systemctl reboot` or `poweroff` where quorate-shutdown.service is enabled, or run `quorate node"
        " shutdown` on the host before. What was not acknowledged is lost to its writer either way"
    )


def stuck_note(model: ClusterModel, permitted: Iterable[Action]) -> str:
    """For the person who is granted these actions, or asks; empty: no command hangs in the kernel of these hosts."""
    return stuck_hosts(
        dict.fromkeys(node.label for action in permitted for node in _nodes(model, action) if _hangs(node))
    )


def stuck_hosts(hosts: Iterable[str]) -> str:
    """The same, of hosts that are known to be so."""
    told = list(hosts)
    if not told:
        return ""
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return (
        f"commands hang in the kernel of {', '.join(told[:_NAMED])}{more}: nothing but a reboot ends them. Drain, then"
        " reboot; if that does not end by itself, cut the power (KernelStuck of nodes.longhorn.io says which commands)"
    )


def _hangs(node: NodeItem) -> bool:
    return node.info is not None and node.info.stuck


def _is_stranded(group: GroupItem, leaving: Iterable[int]) -> bool:
    facts, going = group.volume, frozenset(leaving)
    assert facts is not None
    if not facts.attached_on or facts.attached_on - going:
        # Nobody uses it; or somebody elsewhere does, and has been asked about.
        return False
    return not is_writable(
        group, frozenset(part.id for part in group.members if part.node.id in going or _is_held(part))
    )


def _is_held(part: VDiskItem) -> bool:
    items: tuple[Item, ...] = (part, part.node, *part.drives)
    return any(item.locks is not None and bool(item.locks.held) for item in items)


def _told(group: GroupItem, leaving: dict[int, NodeItem]) -> str:
    assert group.volume is not None
    hosts = ", ".join(node.name for number, node in leaving.items() if number in group.volume.attached_on)
    return f"{group.label} on {hosts}"


def _nodes(model: ClusterModel, action: Action) -> list[NodeItem]:
    items = find(model, action)
    return [] if isinstance(items, Unresolved) else [item for item in items if isinstance(item, NodeItem)]
