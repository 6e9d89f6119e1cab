"""Comparing a new tree with an old one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from quorate.engine.embedded.causes import identity

if TYPE_CHECKING:
    from quorate.engine.embedded.schema.node import Node

#: There is no old value to compare with. (None is a value: null.)
ABSENT: Any = object()


def same(new: Any, old: Any) -> bool:
    """Equal as JSON. Python's own equality takes true for 1 and 1.0 for 1, but it is fast: it is asked first."""
    if new is old:
        return True
    if type(new) is not type(old) or new != old:
        return False
    if type(new) is dict:
        return all(same(part, old[name]) for name, part in new.items())
    if type(new) is list:
        return all(map(same, new, old))
    return True


def item_key(item: Any, node: Node) -> Any:
    """What tells an item from the others in a list of distinct items: the item, or in a list-map its key fields."""
    if node.list_type == "map":
        return {name: item[name] for name in node.map_keys if name in item} if type(item) is dict else {}
    return item


def item_identity(item: Any, node: Node) -> Hashable:
    """The same in a form that can be looked up. Most are known by one text, which need not be written as JSON first."""
    if node.list_type == "map" and len(node.map_keys) == 1 and type(item) is dict:
        value = item.get(node.map_keys[0])
        if type(value) is str:
            return (value,)
    return identity(item_key(item, node))


def old_items(old: Any, node: Node) -> Callable[[Any], Any]:
    """Finds the old item with the same key as a new one: only in a list-map is there such a thing."""
    if node.list_type != "map" or type(old) is not list:
        return lambda item: ABSENT
    known = {item_identity(item, node): item for item in old}
    return lambda item: known.get(item_identity(item, node), ABSENT)
