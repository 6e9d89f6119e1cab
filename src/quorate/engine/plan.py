"""What a decision asks for: writes in order, events, and when to look again.

A Plan can only be built if it keeps these rules; breaking one is a bug of the decision and raises InvalidPlan.

- A pass that begins or advances a transition writes only that: ``transition``, a status write that holds only if the
  object has not changed since it was observed. Everything that follows from it is done by the next pass, which sees it.
- In every other pass the object's own status (``status``) goes last. It reports what the snapshot showed.
- Spec and status are two writes, because to the API server they are.
- An object's finalizer comes before its first child, in a pass of its own.
- No write builds on a state that an earlier write of the same plan has changed.

Writes hold typed objects as observed and as intended; what is sent is the difference. So a field that this version
does not know is never lost, and a difference that is empty is no write at all. Lists are replaced whole: a list has
one writer. In a patch of status they are left typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import Any, NoReturn, TypeVar

import msgspec

from quorate.api.codec import to_builtins
from quorate.api.meta import Resource
from quorate.api.struct import Struct, attributes
from quorate.engine.keys import key_of
from quorate.engine.merge import difference
from quorate.engine.selectors import EVERYTHING, Selector
from quorate.errors import InvalidPlan

R = TypeVar("R", bound=Resource)

#: What a controller may change in another's metadata. Finalizers have writes of their own.
_OURS_IN_METADATA = ("labels", "annotations", "owner_references")


class _OfObject:
    """A write of the object in ``obj``."""

    __slots__ = ()
    obj: Resource

    @property
    def target(self) -> Resource:
        """The object that is written."""
        return self.obj


class _OfDifference:
    """A write of the difference between ``observed`` and what is intended."""

    __slots__ = ()
    observed: Resource

    @property
    def target(self) -> Resource:
        """The object that is written."""
        return self.observed


@dataclass(frozen=True, slots=True)
class Create(_OfObject):
    """A new object. Its name derives from its parent's, so creating it twice is impossible."""

    obj: Resource

    def __post_init__(self) -> None:
        metadata = self.obj.metadata
        if not metadata.name or metadata.generate_name:
            _refuse(self, "it needs a name of its own, derived from its parent's")
        if metadata.uid or metadata.resource_version:
            _refuse(self, "it was read from the store: an object that exists is patched")


@dataclass(frozen=True, slots=True)
class Patch(_OfDifference):
    """Everything but status: spec, labels, annotations, owner references."""

    observed: Resource
    intended: Resource
    #: Only if nobody has written the object since it was observed.
    if_unchanged: bool = False
    #: The difference, as a merge patch; not shown: in it a secret is plain.
    patch: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_object(self, self.observed, self.intended)
        if getattr(self.observed, "status", None) != getattr(self.intended, "status", None):
            _refuse(self, "it changes status: spec and status are two writes, use PatchStatus")
        object.__setattr__(self, "patch", _difference(self.observed, self.intended))


@dataclass(frozen=True, slots=True)
class PatchStatus(_OfDifference):
    """Only status."""

    observed: Resource
    intended: Resource
    #: Only if nobody has written the object since it was observed.
    if_unchanged: bool = False
    #: The difference of status, as a merge patch; not shown either.
    patch: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_object(self, self.observed, self.intended)
        for name in _fields(self.observed):
            if name != "status" and getattr(self.observed, name) != getattr(self.intended, name):
                _refuse(self, f"it changes {name}: spec and status are two writes, use Patch")
        before, after = getattr(self.observed, "status", None), getattr(self.intended, "status", None)
        object.__setattr__(self, "patch", _difference(before, after))


@dataclass(frozen=True, slots=True)
class Delete(_OfObject):
    """Ask for the deletion of exactly this object: one of the same name that came later is not meant."""

    obj: Resource
    #: Only if nobody has written the object since it was observed.
    if_unchanged: bool = False


@dataclass(frozen=True, slots=True)
class AddFinalizer(_OfObject):
    """Keep the object until we let go of it. No write if the finalizer is there already."""

    obj: Resource
    finalizer: str
    #: What else is put on the object in the same write.
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.obj.deleting and self.finalizer not in self.obj.metadata.finalizers:
            _refuse(self, "the object is being deleted: Kubernetes allows no new finalizer")

    @property
    def if_unchanged(self) -> bool:
        """Always: the list of finalizers has many writers and can only be replaced whole."""
        return True


@dataclass(frozen=True, slots=True)
class NoneLeft:
    """Objects that must not exist any more, asked of the store itself: a cache may not know of the last one yet."""

    cls: type[Resource]
    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: Selector = EVERYTHING


@dataclass(frozen=True, slots=True)
class ReleaseFinalizer(_OfObject):
    """Let go of the object, once what it was kept for is gone. No write if the finalizer is not there."""

    obj: Resource
    finalizer: str
    after: tuple[NoneLeft, ...]

    @property
    def if_unchanged(self) -> bool:
        """Always: the list of finalizers has many writers and can only be replaced whole."""
        return True


Write = Create | Patch | PatchStatus | Delete | AddFinalizer | ReleaseFinalizer


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """Something to tell people about an object, as a Kubernetes Event. Never the only record of a decision."""

    obj: Resource
    #: A CamelCase code.
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of one decision. See the module's docstring for the rules."""

    #: Carried out in order, before ``status``.
    writes: tuple[Write, ...] = ()
    #: The own status of the object the pass is about.
    status: PatchStatus | None = None
    #: The only write of a pass that begins or advances a transition.
    transition: PatchStatus | None = None
    #: Recorded after the writes, and only if there were any: where nothing changed there is nothing to tell.
    events: tuple[PlanEvent, ...] = ()
    #: Look again after so many seconds, even if nothing happens.
    requeue_after: float | None = None
    #: Called in order once every write has been made. Agents have such, and the broker: each starts work, on hardware
    #: say, which goes on beside the passes and wakes the key (``engine.signal``) when it is done. None may wait.
    effects: tuple[Callable[[], None], ...] = ()
    #: Called before the first write, without a pause since the snapshot was taken; what it returns is called once the
    #: outcome of every write is known. It tells another part of this process, which would not see writes that are under
    #: way, that they are coming. Conflict: too late, look again.
    claim: Callable[[], Callable[[], None]] | None = None
    #: What is really to be done, in order: every write that changes something.
    steps: tuple[Write, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.requeue_after is not None and not (self.requeue_after > 0 and isfinite(self.requeue_after)):
            raise InvalidPlan(f"requeue_after is {self.requeue_after}: it must be a number of seconds above zero")
        if self.transition is not None:
            self._check_transition(self.transition)
            steps = _effective((self.transition,))
        elif self.status is not None:
            steps = _effective((*self.writes, self.status))
        else:
            steps = _effective(self.writes)
        if len(steps) > 1:
            _check_sequence(steps)
        object.__setattr__(self, "steps", steps)

    def _check_transition(self, transition: PatchStatus) -> None:
        if self.writes or self.status is not None:
            _refuse(
                transition, "a pass that advances a transition writes nothing else: the next pass sees it and goes on"
            )
        if not transition.if_unchanged:
            _refuse(transition, "a transition needs if_unchanged: it must not be advanced from a state that has passed")


def _effective(writes: tuple[Write, ...]) -> tuple[Write, ...]:
    return tuple([write for write in writes if _changes_something(write)])


def _changes_something(write: Write) -> bool:
    match write:
        case Patch() | PatchStatus():
            return bool(write.patch)
        case AddFinalizer():
            return write.finalizer not in write.obj.metadata.finalizers
        case ReleaseFinalizer():
            return write.finalizer in write.obj.metadata.finalizers
        case _:
            return True


def _check_sequence(steps: tuple[Write, ...]) -> None:
    written: dict[tuple[object, ...], list[Write]] = {}
    kept = {step.obj.metadata.uid for step in steps if isinstance(step, AddFinalizer)}
    for step in steps:
        target = step.target
        before = written.setdefault((target.KIND, key_of(target)), [])
        if isinstance(step, Create) and any(owner.uid in kept for owner in target.metadata.owner_references):
            _refuse(step, "its parent only gets its finalizer in this plan: no child before the finalizer is seen")
        if any(type(earlier) is type(step) for earlier in before):
            _refuse(step, "the plan has another write of this sort to the same object: make it one")
        if any(_ends(earlier) for earlier in before):
            _refuse(step, "an earlier write of the plan ends the object's life")
        if before and not isinstance(step, Create) and step.if_unchanged:
            _refuse(step, "an earlier write of the plan changes the object, so it would always be a conflict")
        before.append(step)


def _ends(write: Write) -> bool:
    if isinstance(write, ReleaseFinalizer):
        return write.obj.deleting and write.obj.metadata.finalizers == (write.finalizer,)
    return isinstance(write, Delete)


def _check_same_object(write: Patch | PatchStatus, observed: Resource, intended: Resource) -> None:
    if type(observed) is not type(intended):
        _refuse(write, f"observed and intended are of different kinds, the latter {type(intended).__name__}")
    if observed.metadata is intended.metadata:
        return
    for name in _fields(observed.metadata):
        if name not in _OURS_IN_METADATA and getattr(observed.metadata, name) != getattr(intended.metadata, name):
            hint = ": use AddFinalizer and ReleaseFinalizer" if name == "finalizers" else ""
            _refuse(write, f"observed and intended differ in metadata.{name}{hint}")


def _difference(before: Any, after: Any) -> dict[str, Any]:
    """The merge patch from one struct to another: fields that are equal are not looked into, and lists not compared."""
    if before is after:
        return {}
    cls: type = type(before)
    fields = attributes(cls).items()
    names = {wire: name for wire, name in fields if _differs(getattr(before, name), getattr(after, name))}
    patch = {}
    if not isinstance(after, Resource):
        patch = {wire: value for wire, name in names.items() if _is_list(value := getattr(after, name))}
        names = {wire: name for wire, name in names.items() if wire not in patch}
    if not names:
        return patch
    merged = [name for name in names.values() if isinstance(getattr(before, name), Struct | dict)]
    old = to_builtins(_only(before, merged)) if merged else {}
    new = to_builtins(_only(after, names.values()))
    for wire in names:
        was, value = old.get(wire), new.get(wire)
        patch[wire] = difference(was, value) if isinstance(was, dict) and isinstance(value, dict) else value
    return patch


def _differs(before: object, after: object) -> bool:
    """Whether a field has changed. What is shared has not, and may be a ledger with a thousand entries."""
    return before is not after and before != after


def _is_list(value: object) -> bool:
    """Whether it is a list of structs: whoever sends it can see which of its items are still those that he has."""
    return type(value) is tuple and bool(value) and isinstance(value[0], Struct)


def _only(struct: Any, fields: Iterable[str]) -> Any:
    """The struct with nothing but these fields, and those that it cannot be without."""
    cls: type = type(struct)
    return cls(**{name: getattr(struct, name) for name in (*_required(cls), *fields)})


def _fields(struct: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = struct.__struct_fields__
    return found


@cache
def _required(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(cls) if field.required)


def _refuse(write: Write, why: str) -> NoReturn:
    target = write.target
    raise InvalidPlan(f"{type(write).__name__} of {target.KIND.name} {key_of(target)}: {why}")


#: Nothing to do.
NOTHING = Plan()
