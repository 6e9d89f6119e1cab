"""What the embedded engine hands out: stored objects, and the answers to its verbs.

What every write makes is a msgspec struct: a frozen dataclass takes ten times as long to make.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from quorate.api.codec import decoder
from quorate.api.kind import Kind
from quorate.api.meta import Resource
from quorate.engine.store import EventType

#: Parsed JSON: dicts, lists and scalars. The engine never changes one in place, it shares what stays the same.
#: At the top, and one level below, a part that nobody is going to look at may be left unparsed (``msgspec.Raw``).
Tree = dict[str, Any]

#: Namespace and name; the namespace of a cluster-scoped object is empty. Their order is the order of lists.
Key = tuple[str, str]


class FieldValidation(StrEnum):
    """What to do about fields that the schema does not know (they are dropped either way)."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class Record(msgspec.Struct, frozen=True):
    """One stored object at one version; shared by everybody, never mutated."""

    kind: Kind
    namespace: str
    name: str
    #: ``int(metadata.resourceVersion)``; 0 for what a dry run would have created.
    version: int
    #: The exact JSON as stored, with apiVersion and kind: the source of truth.
    raw: bytes
    #: The same, decoded once.
    typed: Resource

    @property
    def tree(self) -> Tree:
        """A fresh parse of ``raw``."""
        parsed: Tree = msgspec.json.decode(self.raw)
        return parsed

    def tree_of(self, parts: Container[str], fields: Container[str] | None = None) -> Tree:
        """The same, but only some parts are parsed, and of status only some fields, if any are named.

        A status write is about a few fields, and parsing all of them takes four times as long.
        """
        tree: Tree = {}
        for name, part in _skim.decode(self.raw).items():
            if name == "status" and fields is not None:
                tree[name] = {
                    field: _json(value) if field in fields else value for field, value in _skim.decode(part).items()
                }
            else:
                tree[name] = _json(part) if name in parts else part
        return tree


_json = msgspec.json.decode
_skim = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parsed(tree: Any) -> Any:
    """A tree without unparsed parts."""
    if type(tree) is msgspec.Raw:
        return _json(tree)
    return {name: parsed(part) for name, part in tree.items()} if type(tree) is dict else tree


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, as everything was at one version."""

    records: tuple[Record, ...]
    resource_version: int
    #: Where the next page begins; empty on the last one.
    continue_token: str = ""
    #: How many are left after this page; None where a selector makes counting them too dear.
    remaining: int | None = None


class Change(msgspec.Struct, frozen=True):
    """One event of a subscription. A bookmark has no record."""

    type: EventType
    record: Record | None
    version: int
    #: Set on the bookmark that follows the state a subscription began with.
    initial_events_end: bool = False


class Written(msgspec.Struct, frozen=True):
    """The answer to a write: the object as stored, and what the writer should know."""

    record: Record
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deleted:
    """The answer to a deletion: the last state seen, and whether it is gone or waits for finalizers."""

    record: Record
    gone: bool


def version_number(text: str) -> int | None:
    """A resourceVersion as a number; empty text is 0, and None is for text that never was one."""
    if not text:
        return 0
    # Python's own int() is more generous than that, and slow on a million digits.
    return int(text) if len(text) <= 20 and text.isascii() and text.isdigit() else None


def decode(kind: Kind, namespace: str, name: str, version: int, raw: bytes) -> Record:
    """A record from its stored bytes; raises msgspec.DecodeError when they do not fit the kind."""
    return Record(kind, namespace, name, version, raw, decoder(kind.type).decode(raw))


def at_version(record: Record, version: int) -> Record:
    """The same state under another resourceVersion: how an object looks in the event of its deletion."""
    tree = record.tree
    metadata = {**tree["metadata"], "resourceVersion": str(version)}
    raw = msgspec.json.encode({**tree, "metadata": metadata})
    return decode(record.kind, record.namespace, record.name, version, raw)
