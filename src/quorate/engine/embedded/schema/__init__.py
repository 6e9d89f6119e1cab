"""What a kind's schema demands of an object: shape it, judge it, and say what is wrong.

The schema is the one that the kind's CRD carries; it is compiled once. An object that somebody sent is brought
into shape (``shape``), then judged: by the typed decoder and ``checks``, which are fast and only say yes or no,
and on a no by ``explain``, which names every fault. Rules between fields (``rules``, CEL) come last. All of them
compare with the stored object and leave alone what did not change.

Of Kubernetes' own kinds our types declare only what we read: there, unknown fields are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

import msgspec

from quorate.api.kind import Kind
from quorate.api.meta import Resource
from quorate.api.schema import structural_schema
from quorate.engine.embedded import causes
from quorate.engine.embedded.record import Tree, parsed
from quorate.engine.embedded.schema.checks import compile_check
from quorate.engine.embedded.schema.explain import duplicates, explain
from quorate.engine.embedded.schema.node import Node, compile_node
from quorate.engine.embedded.schema.rules import violations
from quorate.engine.embedded.schema.shape import shape
from quorate.engine.embedded.schema.trees import ABSENT, same
from quorate.engine.embedded.schema.typed import TypedDecoder
from quorate.errors import Cause

__all__ = ["KindSchema", "same"]

#: Not the schema's business: it lets them pass as they are.
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata")
_ANYTHING = {"nullable": True, "x-kubernetes-preserve-unknown-fields": True}


class KindSchema:
    """The compiled schema of one kind."""

    def __init__(self, kind: Kind) -> None:
        schema = structural_schema(kind)
        properties = {**schema["properties"], **dict.fromkeys(_OBJECT_FIELDS, _ANYTHING)}
        self._node: Node = compile_node({**schema, "properties": properties}, preserve=not kind.crd)
        self._check = compile_check(self._node)
        self._decoder = TypedDecoder(kind)
        self._read_with: dict[frozenset[str], frozenset[str] | None] = {}
        #: Parts that no rule of the whole object looks at.
        self._apart = frozenset(
            name
            for name in self._node.properties
            if not any(rule.program.fields is None or name in rule.program.fields for rule in self._node.rules)
        )

    def read_with(self, changed: frozenset[str]) -> frozenset[str] | None:
        """The parts of an object that are looked at when these change; None: all of it.

        A rule of the whole object that looks at one of them may look at others as well.
        """
        if changed not in self._read_with:
            looked_at = [rule.program.fields for rule in self._node.rules]
            known = [fields for fields in looked_at if fields is not None]
            beside = [fields for fields in known if not changed.isdisjoint(fields)]
            everything = len(known) < len(looked_at)
            self._read_with[changed] = None if everything else changed.union(_OBJECT_FIELDS, *beside)
        return self._read_with[changed]

    def shape(self, tree: Tree, old: Tree | None, unknown: list[str]) -> Tree:
        """An object in shape; the paths of fields that were dropped are added to ``unknown``."""
        shaped: Tree = shape(tree, old, self._node, "", unknown)
        return shaped

    def judge(
        self,
        raw: bytes,
        tree: Tree,
        before: Tree | None,
        last: Resource | None,
        *,
        found: Iterable[Cause] = (),
        part: str = "",
    ) -> tuple[Resource | None, list[Cause]]:
        """The typed object and everything that is wrong with it, beginning with the faults ``found`` already.

        ``raw`` encodes ``tree``; ``before`` and ``last`` are the state that it replaces, as a tree and typed. With
        ``part`` (``status``), nothing else can differ from it.
        """
        faults = list(found)
        typed: Resource | None = None
        refusal = ""
        try:
            typed = self._typed(raw, tree, before, last)
        except msgspec.ValidationError as error:
            refusal = str(error)
        if typed is None or (self._check is not None and not self._check(tree, before)):
            explained = self._explain(tree, before, part)
            faults += explained
            if typed is None and not explained:
                faults.append(_undecodable(refusal))
        if self._node.has_rules:
            if causes.blocks_rules(faults):
                faults.append(causes.RULES_NOT_CHECKED)
            elif before is not None and part in self._apart:
                broken = violations(tree.get(part), before.get(part, ABSENT), self._node.properties[part], part)
                faults += islice(broken, causes.MOST + 1)
            else:
                old = ABSENT if before is None else self._visible(before)
                faults += islice(violations(self._visible(tree), old, self._node), causes.MOST + 1)
        return typed, faults

    def _typed(self, raw: bytes, tree: Tree, before: Tree | None, last: Resource | None) -> Resource:
        if before is not None and last is not None:
            with suppress(msgspec.ValidationError):
                return self._decoder.next(last, before, tree)
        # Of a fault, only who reads the whole can say where it is.
        return self._decoder.first(raw)

    def _visible(self, tree: Tree) -> Tree:
        """An object as its own rules, if it has any, see it: of metadata, the name only."""
        if not self._node.rules:
            return tree
        metadata = {name: part for name, part in tree["metadata"].items() if name in ("name", "generateName")}
        return {**tree, "metadata": metadata}

    def _explain(self, tree: Tree, before: Tree | None, part: str) -> list[Cause]:
        tree = parsed(tree)
        before = None if before is None else parsed(before)
        faults = []
        if not part:
            faults += explain(tree, ABSENT if before is None else before, self._node)
        elif part in tree:
            old = ABSENT if before is None else before.get(part, ABSENT)
            faults += explain(tree[part], old, self._node.properties[part], part)
        # An object that had duplicates before may keep them.
        if before is None or not any(duplicates(before, self._node)):
            faults += islice(duplicates(tree, self._node), causes.MOST + 1)
        return faults


def _undecodable(refusal: str) -> Cause:
    """Valid by the schema, and yet our type cannot hold it."""
    problem, _, place = refusal.partition(" - at `$.")
    return Cause("FieldValueInvalid", f"Invalid value: {problem}", place.rstrip("`") or causes.NO_FIELD)
