"""The base of every wire type, and the annotations that carry its rules.

A field is declared once. From the declaration come the decoder (msgspec, in C), the structural schema
that the embedded engine validates with, and the generated CRD:

- bounds and patterns: ``Annotated[int, Meta(ge=0, le=7)]`` (msgspec's own ``Meta``);
- a rule between fields or against the old value: ``Annotated[str, rule("self == oldSelf", "…")]``, or
  for a whole struct the class variable ``RULES``;
- how a list merges: ``Annotated[tuple[Condition, ...], list_map("type")]`` or ``list_set()``;
- whether zeros are written: usually a field that is zero, empty or False is absent; in a struct with the class variable
  ``WHOLE`` every field is there. That is for what was observed: who reads "absent" cannot tell False from unknown.

Types are frozen and share their parts freely: a snapshot is a reference, a change is ``replace``.
They are not tracked by the garbage collector (``gc=False``): wire data is a tree, it has no cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

import msgspec
from msgspec import Meta, StructMeta

S = TypeVar("S", bound="Struct")


#: How a rule begins that is tried of new values only (``optionalOldSelf``).
ONLY_OF_NEW = "oldSelf.hasValue() || "


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule (``x-kubernetes-validations``): ``self`` is the value, ``oldSelf`` makes it a transition rule."""

    expression: str
    message: str
    #: One of FieldValueInvalid, FieldValueForbidden, FieldValueRequired, FieldValueDuplicate.
    reason: str = "FieldValueInvalid"
    #: Where the error is reported, relative to the struct that carries the rule, such as ``.nodeName``.
    field_path: str = ""
    #: Tried when the value is made, and never of one that is there already.
    only_of_new: bool = False
    #: The message in CEL, where it names values; the plain one is for when it cannot be told.
    message_expression: str = ""

    def to_schema(self) -> dict[str, Any]:
        """As the CRD and the embedded engine read it."""
        if self.only_of_new:
            schema: dict[str, Any] = {"rule": f"{ONLY_OF_NEW}({self.expression})", "optionalOldSelf": True}
        else:
            schema = {"rule": self.expression}
        schema["message"] = self.message
        if self.message_expression:
            schema["messageExpression"] = self.message_expression
        if self.reason != "FieldValueInvalid":
            schema["reason"] = self.reason
        if self.field_path:
            schema["fieldPath"] = self.field_path
        return schema


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _WireType(StructMeta):
    """Gives every wire type its settings; msgspec does not hand ``kw_only`` down to subclasses."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _WireType:  # noqa: PYI034 - mypy allows no Self in a metaclass
        omit_defaults = not namespace.get("WHOLE", False)
        return super().__new__(
            mcls,
            name,
            bases,
            namespace,
            frozen=True,
            kw_only=True,
            omit_defaults=omit_defaults,
            rename="camel",
            gc=False,
        )


# A type checker believes msgspec.Struct's own settings over the metaclass's, so it is not told of that base.
if TYPE_CHECKING:
    _Base = object
else:
    _Base = msgspec.Struct


class Struct(_Base, metaclass=_WireType):
    """Base of every wire type: immutable, camelCase on the wire, absent fields stay absent."""

    #: Rules between the fields of this struct.
    RULES: ClassVar[tuple[Rule, ...]] = ()


# A type checker does not know that a Struct is one of msgspec's: see above.
if TYPE_CHECKING:

    def replace(struct: S, /, **changes: Any) -> S:
        """A copy with some fields changed; everything else is shared."""

else:
    replace = msgspec.structs.replace


@cache
def attributes(cls: type) -> Mapping[str, str]:
    """What the fields of a wire type are called in Python, by what they are called on the wire."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(cls)}


def rule(expression: str, message: str, *, reason: str = "FieldValueInvalid") -> Meta:
    """A CEL rule on one field."""
    return Meta(extra_json_schema={"x-kubernetes-validations": [Rule(expression, message, reason).to_schema()]})


def immutable(message: str = "is immutable") -> Meta:
    """The field cannot change once the object exists. It must be required: for an optional one see below."""
    return rule("self == oldSelf", message)


def immutable_optional(name: str) -> Rule:
    """A RULE: an optional field that is as it was when the object was made, present or absent."""
    return Rule(
        f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
        f"{name} is immutable",
        field_path=f".{name}",
    )


def immutable_once_set(name: str) -> Rule:
    """A RULE: an optional field that may be set later, once."""
    return Rule(
        f"!has(oldSelf.{name}) || (has(self.{name}) && self.{name} == oldSelf.{name})",
        f"{name} is immutable once set",
        field_path=f".{name}",
    )


def positive_quantity(message: str) -> Meta:
    """A quantity above zero."""
    return rule(_unless_absurd("quantity(string(self)).compareTo(quantity('0')) > 0"), message)


def growing_quantity(message: str) -> Meta:
    """A quantity that never gets less."""
    return rule(_unless_absurd(at_least("self", "oldSelf")), message)


def lowered_only_to(name: str, floor: str, *more: str, message: str) -> Rule:
    """A RULE: a quantity that gets less only once the first of these fields is there, and below none that is."""
    new, old = f"self.{name}", f"oldSelf.{name}"
    floors = [f"({_is_there(floor)} && {at_least(new, f'self.{floor}')})"]
    floors += [f"(!({_is_there(each)}) || {at_least(new, f'self.{each}')})" for each in more]
    lowered = " && ".join(floors)
    return Rule(
        _unless_absurd(f"{at_least(new, old)} || ({lowered})", new),
        message,
        field_path=f".{name}",
        # A rule of the whole object is not shown with the value that it is about.
        message_expression=f"'\"' + string({new}) + '\": {message}'",
    )


def at_least(one: str, other: str) -> str:
    """That one quantity is not below another."""
    return f"quantity(string({one})).compareTo(quantity(string({other}))) >= 0"


def _is_there(path: str) -> str:
    """That an optional field is there, and everything that it is in."""
    parts = path.split(".")
    return " && ".join(f"has(self.{'.'.join(parts[: end + 1])})" for end in range(len(parts)))


def _unless_absurd(comparison: str, subject: str = "self") -> str:
    """An API server tries rules also on text that breaks the pattern, which has said what is wrong then.

    Comparing 1e99999999 would take it minutes.
    """
    return f"string({subject}).matches('[eE][+-]?[0-9]{{4}}') || !isQuantity(string({subject})) || {comparison}"


def list_map(*keys: str) -> Meta:
    """A list whose items are identified by these fields; duplicates are refused."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def list_set() -> Meta:
    """A list of distinct scalars."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
