"""A patch of status in words, as JSON has it.

Its lists come typed. A controller that changes one condition of sixteen hands back the fifteen others as it got them,
and those are known here in words already: an item that is the very same as in the last state becomes the very same
tree, at which nobody then looks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.api.codec import to_builtins
from quorate.api.struct import attributes
from quorate.engine.embedded.record import Tree
from quorate.engine.store import MergePatch


def in_words(patch: MergePatch, before: Tree, last: Any) -> MergePatch:
    """The patch, where ``before`` is the status that it is for, and ``last`` the same, typed."""
    cls: type = type(last)
    words = dict(patch)
    for name, value in patch.items():
        if type(value) is tuple:
            words[name] = _items(value, before.get(name, ()), getattr(last, attributes(cls)[name]))
    return words


def _items(items: tuple[Any, ...], before: Sequence[Any], last: Sequence[Any]) -> list[Any]:
    shared = min(len(items), len(before))
    places = zip(items[:shared], last[:shared], before[:shared], strict=True)
    kept = [words if item is known else to_builtins(item) for item, known, words in places]
    return [*kept, *to_builtins(items[shared:])]
