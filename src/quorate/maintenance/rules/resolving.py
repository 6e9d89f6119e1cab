"""What an action would lock, for those who only want to know that."""

from __future__ import annotations

from quorate.api.maintenance.action import Issue
from quorate.maintenance.evaluation import Refusal
from quorate.maintenance.messages import Action
from quorate.maintenance.model.cluster import ClusterModel
from quorate.maintenance.model.items import DriveItem, NodeItem, VDiskItem
from quorate.maintenance.model.lookup import Items, Unresolved, find


def resolve(model: ClusterModel, action: Action) -> Items | Refusal:
    """The nodes or devices of an action; or what is wrong with it: its type, host, services or devices."""
    items = find(model, action)
    if isinstance(items, Unresolved):
        return Refusal(action, items.code, Issue(message=items.message))
    return Items(
        nodes=tuple(item.id for item in items if isinstance(item, NodeItem)),
        devices=tuple(item.id for item in items if isinstance(item, DriveItem | VDiskItem)),
    )
