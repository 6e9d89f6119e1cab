"""Which objects a list or a subscription is about."""

from __future__ import annotations

from typing import Any

from quorate.api.kind import Kind
from quorate.engine.embedded.record import Record
from quorate.engine.selectors import Operator, Selector
from quorate.errors import BadRequest


class Selection:
    """A namespace (empty for all), a label selector and a field selector."""

    __slots__ = ("_fields", "_labels", "_namespace", "_paths", "everything", "narrowed")

    def __init__(self, kind: Kind, namespace: str, labels: Selector, fields: Selector) -> None:
        known = {path.lstrip("."): path.lstrip(".").split(".") for path in kind.selectable_fields}
        always = ("metadata.name", "metadata.namespace") if kind.namespaced else ("metadata.name",)
        for requirement in fields.requirements:
            if requirement.key not in known and requirement.key not in always:
                raise BadRequest(f"field label not supported: {requirement.key}")
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._paths = {one.key: known[one.key] for one in fields.requirements if one.key in known}
        #: Whether a selector takes part, beside the namespace.
        self.narrowed = bool(labels) or bool(fields)
        self.everything = not namespace and not self.narrowed

    def __contains__(self, record: Record) -> bool:
        if self._namespace and record.namespace != self._namespace:
            return False
        if self._labels and not self._labels.matches(record.typed.metadata.labels):
            return False
        return not self._fields or self._fields.matches(self._field_values(record))

    @property
    def label(self) -> tuple[str, str] | None:
        """A label that every selected object carries with this value; None: no single one is known."""
        for one in self._labels.requirements:
            if one.operator in (Operator.EQUALS, Operator.IN) and len(one.values) == 1:
                return one.key, one.values[0]
        return None

    def _field_values(self, record: Record) -> dict[str, str]:
        values = {"metadata.name": record.name, "metadata.namespace": record.namespace}
        if self._paths:
            # From the JSON, where an absent field is not the same as a false or a zero.
            tree = record.tree
            for key, path in self._paths.items():
                values[key] = _text(tree, path)
        return values


def _text(tree: Any, path: list[str]) -> str:
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    match tree:
        case None:
            return ""
        case bool():
            return "true" if tree else "false"
        case _:
            return str(tree)
