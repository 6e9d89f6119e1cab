"""Stored objects to response bodies, in the representation that was negotiated.

The common case costs nothing: an object's stored bytes are its JSON, so they go out as they are, and a list is
the bytes of its items, joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from quorate.api.kind import Kind
from quorate.engine.clock import Clock
from quorate.engine.embedded import Page, Record
from quorate.engine.store import EventType
from quorate.server.kubernetes.negotiation import Form, Format, Representation
from quorate.server.kubernetes.tables import Include, column_definitions, partial_metadata, row, table

Json = dict[str, Any]

#: libyaml where there is one: four times faster.
_Dumper = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper


@dataclass(frozen=True, slots=True)
class Renderer:
    """How one request wants its objects."""

    kind: Kind
    representation: Representation
    include: Include
    clock: Clock

    @property
    def content_type(self) -> str:
        """The header that goes with the body."""
        return self.representation.format.value

    def one(self, record: Record) -> bytes:
        """A single object."""
        match self.representation.form:
            case Form.OBJECT:
                return self._written(record.raw)
            case Form.METADATA:
                return self._encoded(partial_metadata(msgspec.json.decode(record.raw)))
            case Form.TABLE:
                return self._encoded(self._table([record], {"resourceVersion": str(record.version)}))

    def many(self, page: Page) -> Iterator[bytes]:
        """A list, in pieces that are short to make: a head, one for each object, and a tail."""
        head, name, piece = self._list(page)
        yield msgspec.json.encode(head)[:-1] + b',"' + name + b'":['
        for number, record in enumerate(page.records):
            yield b"," + piece(record) if number else piece(record)
        yield b"]}"

    def _list(self, page: Page) -> tuple[Json, bytes, Callable[[Record], bytes]]:
        """Everything about a list but its items, the name of these, and how each is written."""
        metadata: Json = {"resourceVersion": str(page.resource_version)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
            if page.remaining is not None:
                metadata["remainingItemCount"] = page.remaining
        match self.representation.form:
            case Form.OBJECT:
                if self.kind.crd:
                    metadata.setdefault("continue", "")  # as a real server, for custom kinds only
                head = {"kind": f"{self.kind.name}List", "apiVersion": self.kind.api_version, "metadata": metadata}
                return head, b"items", _raw
            case Form.METADATA:
                head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
                return head, b"items", _metadata
            case Form.TABLE:
                now = self.clock.now()
                head = table([], metadata=metadata, columns=column_definitions(self.kind))
                del head["rows"]
                return head, b"rows", lambda record: msgspec.json.encode(row(self.kind, record.raw, self.include, now))

    def event(self, type_: EventType, record: Record, *, first: bool) -> bytes:
        """One line of a watch; ``first`` carries a table's heading, once is enough."""
        match self.representation.form:
            case Form.OBJECT:
                body = record.raw
            case Form.METADATA:
                body = msgspec.json.encode(partial_metadata(msgspec.json.decode(record.raw)))
            case Form.TABLE:
                body = msgspec.json.encode(
                    self._table([record], {"resourceVersion": str(record.version)}, heading=first)
                )
        return watch_line(type_.value, body)

    def bookmark(self, version: int, *, ends_state: bool) -> bytes:
        """A line that says: everything up to this version was sent."""
        metadata: Json = {"resourceVersion": str(version)}
        if ends_state:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        empty: Json = {"kind": self.kind.name, "apiVersion": self.kind.api_version, "metadata": metadata}
        if self.representation.form is not Form.OBJECT:
            empty = partial_metadata(empty)
        if self.representation.form is Form.TABLE:
            cells: list[Any] = [""] + [None] * len(self.kind.columns)
            empty = table([{"cells": cells, "object": empty}], metadata=metadata, columns=None)
        return watch_line(EventType.BOOKMARK.value, msgspec.json.encode(empty))

    def _table(self, records: list[Record], metadata: Json, *, heading: bool = True) -> Json:
        now = self.clock.now()
        return table(
            [row(self.kind, record.raw, self.include, now) for record in records],
            metadata=metadata,
            columns=column_definitions(self.kind) if heading else None,
        )

    def _encoded(self, tree: Json) -> bytes:
        return self._written(msgspec.json.encode(tree))

    def _written(self, body: bytes) -> bytes:
        if self.representation.format is Format.YAML:
            tree = msgspec.json.decode(body)
            return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode()
        return body


def watch_line(type_: str, body: bytes) -> bytes:
    """One event of a watch stream."""
    return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"


def _raw(record: Record) -> bytes:
    return record.raw


def _metadata(record: Record) -> bytes:
    return msgspec.json.encode(partial_metadata(msgspec.json.decode(record.raw)))
