"""From the log to the state, at the start.

Rows of kinds that this process does not serve are left alone. Objects that were stored under another schema are
brought into the shape of the present one, so that a default that is new holds for them too: in memory only, as
Kubernetes does it. The file changes only when the object is next written, so an older Quorate that is started on
it loses no field that only the newer one knows. A fingerprint of each kind's schema in the file says that all rows
of the kind have that shape, and need not be looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from quorate.api.kind import Kind
from quorate.api.schema import structural_schema
from quorate.engine.embedded.database import Database, Row
from quorate.engine.embedded.record import Key, Record, decode
from quorate.engine.embedded.semantics import KindRules
from quorate.engine.embedded.state import Entry, HistoryLimits, State
from quorate.engine.store import EventType
from quorate.errors import StorageFailure

#: The version of an empty store: 0 means "any" to those who watch.
_FIRST_VERSION = 1

#: In place of a fingerprint: rows of this kind may have the shape of one schema or another.
_MIXED = "mixed"


def load(database: Database, kinds: Iterable[KindRules]) -> State:
    """Read everything, check everything, and make the file ready to be written."""
    rules = {one.kind.qualified_resource: one for one in kinds}
    notes = database.notes()
    state = State((one.kind for one in rules.values()), database.raw)
    state.version = state.floor = _floor(database, notes)
    latest = _fold(database, state, rules)
    fingerprints = {f"schema {name}": _fingerprint(one.kind) for name, one in rules.items()}
    outdated = {name for name in rules if notes.get(f"schema {name}") != fingerprints[f"schema {name}"]}
    for row in latest:
        collection = state.collections[rules[row.kind].kind]
        if row.kind in outdated:
            stored, row = row, _reshaped(rules[row.kind], row)
            if row is not stored:
                # From now on the file has rows of both shapes.
                fingerprints[f"schema {row.kind}"] = _MIXED
        key = (row.namespace, row.name)
        collection.put(key, _decode(database, collection.kind, key, row, outdated=row.kind in outdated), row.at)
    _resume(database, state, marked="marked" in notes)
    if any(notes.get(name) != fingerprint for name, fingerprint in fingerprints.items()):
        database.note(fingerprints)
    return state


def _resume(database: Database, state: State, *, marked: bool) -> None:
    """Go on from the last version that was handed out, which may be above the last that is there."""
    version = database.resume(state.version, marked=marked)
    if version == state.version:
        database.start_writing(version)
        return
    # Whoever heard of versions that are gone must list anew: no history leads from there to here.
    state.forget(HistoryLimits(events=0), 0.0)
    state.version = state.floor = version
    database.start_writing(version, floor=version)


def _floor(database: Database, notes: dict[str, str]) -> int:
    try:
        return int(notes.get("floor", _FIRST_VERSION))
    except (TypeError, ValueError) as error:
        raise database.damage(f"its floor is {notes['floor']!r}, which is no version") from error


def _fold(database: Database, state: State, rules: dict[str, KindRules]) -> list[Row]:
    """The current row of every object; on the way the history is noted."""
    latest: dict[tuple[str, Key], Row] = {}
    gap = ""
    for row in database.rows():
        if row.version > state.floor and row.version != state.version + 1 and not gap:
            gap = f"after version {state.version} comes version {row.version}, and what was between them is missing"
        state.version = max(state.version, row.version)
        known = rules.get(row.kind)
        if known is None:
            continue
        key = (row.namespace, row.name)
        replaced = latest.pop((row.kind, key), None)
        gone = row.type == EventType.DELETED
        if row.version > state.floor:
            if (replaced is None) != (row.type == EventType.ADDED):
                raise database.damage(f"version {row.version} ({row.kind} {row.name}) does not follow from the others")
            entry = Entry(row.version, row.type, key, replaced.version if replaced else 0, row.at)
            state.remember(known.kind, entry)
        else:
            # The process died between moving the floor and erasing what is below it.
            for dead in (replaced, row if gone else None):
                if dead is not None:
                    state.bury(dead.version)
        if not gone:
            latest[row.kind, key] = row
    if gap:
        # Pages of a write-ahead log that was lost while it was being moved into the database, say.
        raise database.damage(gap)
    return list(latest.values())


def _fingerprint(kind: Kind) -> str:
    return hashlib.sha256(msgspec.json.encode(structural_schema(kind))).hexdigest()


def _reshaped(rules: KindRules, row: Row) -> Row:
    try:
        tree = msgspec.json.decode(row.raw)
    except msgspec.DecodeError:
        return row
    shaped = rules.schema.shape(tree, None, [])
    if shaped is tree:
        return row
    raw = msgspec.json.encode(shaped)
    return Row.make(row.version, row.kind, row.namespace, row.name, row.type, row.at, raw)


def _decode(database: Database, kind: Kind, key: Key, row: Row, *, outdated: bool) -> Record:
    try:
        return decode(kind, *key, row.version, row.raw)
    except msgspec.DecodeError as error:
        what = f"{kind.qualified_resource} {'/'.join(filter(None, key))}"
        if outdated:
            raise StorageFailure(
                f"{database.name} was written by another version of Quorate, and {what} in it does not fit this one:"
                f" {error}. Use that version to change it; the file was left as it is"
            ) from error
        raise database.damage(f"{what}: {error}") from error
