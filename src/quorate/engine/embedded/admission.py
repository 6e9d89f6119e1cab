"""Refusals of writes that are well-formed, in the words and codes of a Kubernetes admission policy.

A kind's immutable labels hold for everybody. What else a writer may do is for the caller to say: ``Admit`` is asked
just before a write, of the very state that the write replaces and of what it would make of it. ``deploy/admission`` has
the same rules for a real API server.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quorate.api.kind import Kind
from quorate.engine.embedded.record import Record, Tree
from quorate.errors import ApiError, Cause, Forbidden, Invalid


class Attempt(msgspec.Struct, frozen=True):
    """A write that is about to be made."""

    #: What there is; None: the object is new.
    old: Record | None
    #: What it is to be; None: it is to be deleted.
    new: Record | None
    #: It is written through its status subresource.
    status: bool = False

    @property
    def subject(self) -> Record:
        """The object as it was before; when it is new, as it will be."""
        found = self.new if self.old is None else self.old
        assert found is not None
        return found


#: Raises when something may not be written.
Admit = Callable[[Attempt], None]


def everybody(_: Attempt) -> None:
    """The rule where nothing tells one writer from another."""


def check_labels(kind: Kind, name: str, new: Tree, old: Tree) -> None:
    """Raises Invalid when metadata loses or changes a label that cannot."""
    before, after = old.get("labels", {}), new.get("labels", {})
    for label in kind.immutable_labels:
        if label in before and after.get(label) != before[label]:
            raise _denied(Invalid, kind, name, f"the label {label} is immutable once it is set")


def forbidden(record: Record, why: str) -> ApiError:
    """The answer to a write that its writer may not make."""
    return _denied(Forbidden, record.kind, record.name, why)


def _denied(error: type[ApiError], kind: Kind, name: str, why: str) -> ApiError:
    message = f'{kind.qualified_resource} "{name}" is forbidden: {why}'
    return error(message, group=kind.group, kind=kind.plural, name=name, causes=(Cause("", why),))
