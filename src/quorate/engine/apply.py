"""Carrying out a plan: in order, up to the first failure, remembering what is in doubt.

A plan is never resumed. Whatever stops it, the next pass looks at the world as it then is and decides anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.api.meta import Resource
from quorate.engine.keys import Key, key_of
from quorate.engine.plan import AddFinalizer, Create, Delete, Patch, PatchStatus, Plan, ReleaseFinalizer, Write
from quorate.engine.writer import Writer, surely_not_done
from quorate.errors import QuorateError

#: An object whose last write may or may not have happened.
Doubt = tuple[type[Resource], Key]


class StillThere(QuorateError):
    """A finalizer cannot be released yet: the store has children that our cache did not show."""


async def apply(plan: Plan, writer: Writer, doubts: dict[Doubt, None]) -> None:
    """Carry out all steps of a plan; raises the error of the first that failed.

    If that failure leaves open whether the write happened, also when we are cancelled in the middle of it, the object
    is added to ``doubts``: it must be read again before the next decision.
    """
    for step in plan.steps:
        try:
            await _carry_out(step, writer)
        except BaseException as error:
            if not (isinstance(error, StillThere) or surely_not_done(error)):
                doubts[type(step.target), key_of(step.target)] = None
            raise


async def _carry_out(step: Write, writer: Writer) -> None:
    match step:
        case Create():
            await writer.create(step.obj)
        case Patch():
            await writer.patch(step.observed, step.patch, if_unchanged=step.if_unchanged)
        case PatchStatus():
            await writer.patch_status(step.observed, step.patch, if_unchanged=step.if_unchanged)
        case Delete():
            await writer.delete(step.obj, if_unchanged=step.if_unchanged)
        case AddFinalizer():
            await _set_finalizers(writer, step, (*step.obj.metadata.finalizers, step.finalizer), step.labels)
        case ReleaseFinalizer():
            for children in step.after:
                count = await writer.count(children)
                if count:
                    raise StillThere(
                        f"{step.finalizer} stays on {step.obj.KIND.name} {key_of(step.obj)}: "
                        f"the store still has {count} {children.cls.KIND.name} objects of it"
                    )
            rest = tuple(name for name in step.obj.metadata.finalizers if name != step.finalizer)
            await _set_finalizers(writer, step, rest, {})


async def _set_finalizers(
    writer: Writer, step: AddFinalizer | ReleaseFinalizer, names: tuple[str, ...], labels: Mapping[str, str]
) -> None:
    metadata: dict[str, Any] = {"finalizers": list(names) or None}
    if labels:
        metadata["labels"] = dict(labels)
    await writer.patch(step.obj, {"metadata": metadata}, if_unchanged=step.if_unchanged)
