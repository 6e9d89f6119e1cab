"""What an ``observe`` function reads: the caches of a process, by kind. Synchronous, and nothing is copied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from quorate.api.meta import Resource
from quorate.engine.cache import Cache
from quorate.engine.freshness import Freshness
from quorate.engine.keys import Key

R = TypeVar("R", bound=Resource)


class Reader:
    """All that a controller may know of the cluster."""

    def __init__(
        self, caches: Iterable[Cache[Any]], freshness: Mapping[type[Resource], Freshness] | None = None
    ) -> None:
        self._caches: dict[type[Resource], Cache[Any]] = {cache.cls: cache for cache in caches}
        self._freshness = freshness or {}

    def get(self, cls: type[R], name: str, namespace: str = "") -> R | None:
        """One object, or None."""
        # A Key is a pair, and found by an equal pair; making one costs more than the look-up.
        try:
            return self._caches[cls].get((namespace, name))
        except KeyError:
            raise _not_cached(cls) from None

    def list(self, cls: type[R], namespace: str = "") -> tuple[R, ...]:
        """All objects of a kind (in one namespace), sorted by namespace and name."""
        return self._cache(cls).list(namespace)

    def find(self, cls: type[R], index: str, value: str) -> tuple[R, ...]:
        """The objects that an index has under a value, sorted by namespace and name."""
        return self._cache(cls).find(index, value)

    def silent_for(self, cls: type[Resource], name: str, namespace: str = "") -> float | None:
        """Seconds since we saw an object change, by our own clock; None if there is none."""
        try:
            return self._freshness[cls].silent_for(Key(namespace, name))
        except KeyError:
            raise LookupError(
                f"nobody follows how fresh {cls.__name__} is: a controller must name it in freshness"
            ) from None

    def _cache(self, cls: type[R]) -> Cache[R]:
        try:
            return self._caches[cls]
        except KeyError:
            raise _not_cached(cls) from None


def _not_cached(cls: type[Resource]) -> LookupError:
    return LookupError(f"{cls.__name__} is not cached here: a controller must declare a Watch of it")
