"""All conditions and reasons, by kind: the source of ``docs/conditions.md`` and of ``quorate explain``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

from quorate.api.conditions import backing_image, disks, drive, inventory, lvm, maintenance, rsc, rsp, rv, rva, rvr
from quorate.api.conditions.declaration import ConditionType, Reason, ReasonCodes

CATALOGUE: tuple[tuple[str, ModuleType], ...] = (
    ("ReplicatedStorageClass", rsc),
    ("ReplicatedStoragePool", rsp),
    ("ReplicatedVolume", rv),
    ("ReplicatedVolumeReplica", rvr),
    ("ReplicatedVolumeAttachment", rva),
    ("LVMVolumeGroup, LVMLogicalVolume", lvm),
    ("DiskSchedule", disks),
    ("Node (longhorn)", inventory),
    ("BackingImage", backing_image),
    ("Drive, Volume (csi-baremetal)", drive),
    ("PermissionRequest, Notification, ClusterConfig, BrokerConfig", maintenance),
)

_INTRODUCTION = """\
# Conditions

What every condition means, with each of its reasons and what to do about it. `kubectl describe` shows them on an
object; a condition's message there says more, with the names.

Generated from `src/quorate/api/conditions` by `python -m quorate.api.generate`. Do not edit.
"""


def declared_in(module: ModuleType) -> Iterator[type[ReasonCodes]]:
    """The conditions and code sets of one module, as declared."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, ReasonCodes) and value.__module__ == module.__name__:
            yield value


def markdown() -> str:
    """The catalogue as a page for operators."""
    lines = [_INTRODUCTION]
    for title, module in CATALOGUE:
        lines.append(f"## {title}\n")
        for codes in declared_in(module):
            lines += _section(codes)
    return "\n".join(lines)


def _section(codes: type[ReasonCodes]) -> list[str]:
    is_condition = issubclass(codes, ConditionType)
    head = "| status | reason | meaning | what to do |" if is_condition else "| reason | meaning | what to do |"
    return [
        f"### {codes.__name__}\n",
        f"{inspect.cleandoc(codes.__doc__ or '')}\n",
        head,
        "|---" * (head.count("|") - 1) + "|",
        *(_row(reason, is_condition) for reason in codes.reasons()),
        "",
    ]


def _row(reason: Reason, is_condition: bool) -> str:
    cells = [f"`{reason.code}`", reason.meaning, reason.remedy or "–"]
    return "| " + " | ".join([reason.status.value, *cells] if is_condition else cells) + " |"
