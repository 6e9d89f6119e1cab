"""What is wrong, by an object's own conditions: with the reason, its words, and what a person can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Final

from quorate.api.conditions import inventory, rv, rva, rvr
from quorate.api.conditions.catalogue import declared_in
from quorate.api.conditions.declaration import Reason
from quorate.api.meta import Condition, ConditionStatus
from quorate.api.struct import Struct

#: True is the bad news.
_FEARED: Final = frozenset(
    condition.__name__
    for condition in (rv.DualPrimaryLinkLost, rv.StatusLost, rvr.DiskIOSuspended, inventory.KernelStuck)
)
#: False is no news: nobody uses it here.
_NO_NEWS: Final = frozenset(
    {(rvr.Primary.__name__, ""), (rvr.VolumeAccessReady.__name__, rvr.VolumeAccessReady.NOT_PUBLISHED.code)}
)


class Trouble(Struct):
    """A condition that is not as it should be."""

    condition: str
    status: str
    reason: str
    message: str
    #: What to do; empty: nothing, or only wait.
    remedy: str = ""


def _reasons(module: ModuleType) -> Mapping[tuple[str, str], Reason]:
    return {(codes.__name__, reason.code): reason for codes in declared_in(module) for reason in codes.reasons()}


OF_VOLUMES: Final = _reasons(rv)
OF_REPLICAS: Final = _reasons(rvr)
OF_ATTACHMENTS: Final = _reasons(rva)
OF_NODES: Final = _reasons(inventory)


def troubles(conditions: Iterable[Condition], reasons: Mapping[tuple[str, str], Reason]) -> tuple[Trouble, ...]:
    """All that is wrong, in the order of the object's conditions."""
    found = []
    for condition in conditions:
        good = ConditionStatus.FALSE if condition.type in _FEARED else ConditionStatus.TRUE
        known = {(condition.type, ""), (condition.type, condition.reason)}
        if condition.status is good or known & _NO_NEWS:
            continue
        declared = reasons.get((condition.type, condition.reason))
        found.append(
            Trouble(
                condition=condition.type,
                status=condition.status.value,
                reason=condition.reason,
                message=condition.message,
                remedy=declared.remedy if declared is not None else "",
            )
        )
    return tuple(found)
