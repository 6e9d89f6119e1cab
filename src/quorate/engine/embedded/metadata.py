"""An object's metadata: cleaned on the way in, and held to Kubernetes' rules.

``clean`` is what decoding into ObjectMeta does on an API server: types are checked, unknown fields dropped and
reported, and what is empty is left out, so that equal metadata are equal trees. managedFields and selfLink are
dropped: nobody here reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from quorate.engine.embedded import causes, names
from quorate.engine.embedded.record import Tree
from quorate.errors import Cause

_ANNOTATIONS_LIMIT = 256 * 1024
#: The most labels, finalizers and owners. Kubernetes has no limit but the object's size; nobody has so many.
_LABELS_LIMIT, _FINALIZERS_LIMIT, _OWNERS_LIMIT = 2000, 500, 500
#: Characters of an owner's kind and name in a message.
_OWNER_NAME = 256
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
#: Finalizers that Kubernetes itself uses without a domain.
_STANDARD_FINALIZERS = frozenset({_ORPHAN, _FOREGROUND, "kubernetes"})
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Malformed(Exception):
    """Metadata that is not metadata: the request makes no sense, whatever the object's rules are."""


def clean(metadata: Any, unknown: list[str]) -> Tree:
    """Metadata as it is stored; the paths of fields that do not exist are added to ``unknown``."""
    if metadata is None:
        return {}
    _expect(metadata, dict, "metadata", "an object")
    cleaned: Tree = {}
    for field, value in metadata.items():
        cleaner = _FIELDS.get(field)
        if cleaner is None:
            if len(unknown) < causes.MOST:
                unknown.append(f"metadata.{field}")
        elif value is not None:
            result = cleaner(value, f"metadata.{field}", unknown)
            if result or (result == 0 and field == "deletionGracePeriodSeconds"):
                cleaned[field] = result
    return cleaned


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as metadata has it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def problems(metadata: Tree) -> list[Cause]:
    """What is wrong with labels, annotations, owners and finalizers: not more of it than anybody is told."""
    return list(islice(_problems(metadata), causes.MOST + 1))


def _problems(metadata: Tree) -> Iterator[Cause]:
    labels = metadata.get("labels", {})
    if len(labels) > _LABELS_LIMIT:
        yield causes.too_many("metadata.labels", len(labels), _LABELS_LIMIT)
    for key, value in labels.items():
        for problem in names.qualified_name(key):
            yield causes.invalid("metadata.labels", key, problem)
        for problem in names.label_value(value):
            yield causes.invalid("metadata.labels", value, problem)
    annotations = metadata.get("annotations", {})
    for key in annotations:
        # Annotation keys are label keys whose prefix may be in any case.
        for problem in names.qualified_name(key.lower()):
            yield causes.invalid("metadata.annotations", key, problem)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        yield causes.too_long("metadata.annotations", _ANNOTATIONS_LIMIT)
    yield from _owner_problems(metadata.get("ownerReferences", []))
    yield from _finalizer_problems(metadata)


def name_problems(metadata: Tree, rule: Callable[[str], list[str]]) -> list[Cause]:
    """What is wrong with the name of a new object; ``rule`` is the one of its kind."""
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    found = []
    if prefix:
        # What is generated follows the prefix, so a dash at its end will not end the name.
        probe = f"{prefix[:-1]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        found += [causes.invalid("metadata.generateName", prefix, problem) for problem in rule(probe)]
    if not name:
        return [*found, causes.required("metadata.name", "name or generateName is required")]
    return found + [causes.invalid("metadata.name", name, problem) for problem in rule(name)]


def change_problems(new: Tree, old: Tree) -> list[Cause]:
    """What an update may not do to metadata."""
    found = []
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", [])) - set(old.get("finalizers", [])))
        if added:
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
            found.append(causes.forbidden("metadata.finalizers", detail + causes.shown(added)))
    return found + [
        causes.invalid(f"metadata.{field}", new.get(field), "field is immutable")
        for field in _IMMUTABLE
        if new.get(field) != old.get(field)
    ]


def finalizer_warnings(new: Tree, old: Tree) -> list[str]:
    """Advice on new finalizers that another program might choose too."""
    added = sorted(set(new.get("finalizers", [])) - set(old.get("finalizers", [])) - _STANDARD_FINALIZERS)
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name'
        f"{' including a path (/)' if '.' in name else ''} to avoid accidental conflicts with other finalizer writers"
        for name in added
        if "/" not in name
    ]


def _owner_problems(owners: list[Tree]) -> Iterator[Cause]:
    field = "metadata.ownerReferences"
    if len(owners) > _OWNERS_LIMIT:
        yield causes.too_many(field, len(owners), _OWNERS_LIMIT)
    controller = ""
    told = False
    for owner in owners:
        group, _, version = owner["apiVersion"].rpartition("/")
        if not version or "/" in group:
            yield causes.invalid(f"{field}.apiVersion", owner["apiVersion"], "version must not be empty")
        for part in ("kind", "name", "uid"):
            if not owner[part]:
                yield causes.invalid(f"{field}.{part}", "", "must not be empty")
        if (group, version, owner["kind"]) == ("", "v1", "Event"):
            yield causes.invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            this = f"{owner['kind'][:_OWNER_NAME]}/{owner['name'][:_OWNER_NAME]}"
            if controller and not told:
                # Of many, the first two are enough: each repeats the whole list.
                told = True
                detail = "Only one reference can have Controller set to true. Found "
                yield causes.invalid(field, owners, f'{detail}"true" in references for {controller} and {this}')
            controller = controller or this


def _finalizer_problems(metadata: Tree) -> Iterator[Cause]:
    finalizers = metadata.get("finalizers", [])
    if len(finalizers) > _FINALIZERS_LIMIT:
        yield causes.too_many("metadata.finalizers", len(finalizers), _FINALIZERS_LIMIT)
    for name in finalizers:
        for problem in names.qualified_name(name):
            yield causes.invalid("metadata.finalizers", name, problem)
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield causes.invalid("metadata.finalizers", finalizers, detail)


_JSON_TYPES = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}


def _expect(value: Any, wanted: type, path: str, expected: str) -> None:
    if type(value) is not wanted:
        raise Malformed(f"{path}: expected {expected}, got {_JSON_TYPES.get(type(value), 'null')}")


def _text(value: Any, path: str, _unknown: list[str]) -> str:
    _expect(value, str, path, "text")
    return str(value)


def _integer(value: Any, path: str, _unknown: list[str]) -> int:
    _expect(value, int, path, "a whole number")
    return int(value)


def _time(value: Any, path: str, _unknown: list[str]) -> str:
    _expect(value, str, path, "a time")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Malformed(f"{path}: {value[:80]!r} is not an RFC 3339 time such as 2006-01-02T15:04:05Z")
    return timestamp(moment)


def _texts(value: Any, path: str, _unknown: list[str]) -> list[str]:
    _expect(value, list, path, "a list of texts")
    # A null is an empty text, as everywhere in Kubernetes' own types.
    return [
        item if type(item) is str else _text("" if item is None else item, f"{path}[{index}]", [])
        for index, item in enumerate(value)
    ]


def _text_map(value: Any, path: str, _unknown: list[str]) -> dict[str, str]:
    _expect(value, dict, path, "an object of texts")
    return {
        key: item if type(item) is str else _text("" if item is None else item, f"{path}.{key}", [])
        for key, item in value.items()
    }


def _flag(value: Any, path: str, _unknown: list[str]) -> bool:
    _expect(value, bool, path, "a boolean")
    return bool(value)


def _owners(value: Any, path: str, unknown: list[str]) -> list[Tree]:
    _expect(value, list, path, "a list of owner references")
    owners: dict[tuple[Any, ...], Tree] = {}
    for index, item in enumerate(value):
        at = f"{path}[{index}]"
        _expect(item, dict, at, "an owner reference")
        owner: Tree = dict.fromkeys(("apiVersion", "kind", "name", "uid"), "")
        for field, part in item.items():
            cleaner = _OWNER_FIELDS.get(field)
            if cleaner is None:
                if len(unknown) < causes.MOST:
                    unknown.append(f"{at}.{field}")
            elif part is not None:
                owner[field] = cleaner(part, f"{at}.{field}", unknown)
        # Equal ones once: all fields are texts or booleans, so they can be looked up.
        owners.setdefault(tuple(sorted(owner.items())), owner)
    return list(owners.values())


def _dropped(_value: Any, _path: str, _unknown: list[str]) -> None:
    return None


_Cleaner = Callable[[Any, str, list[str]], Any]

_OWNER_FIELDS: dict[str, _Cleaner] = {
    "apiVersion": _text,
    "kind": _text,
    "name": _text,
    "uid": _text,
    "controller": _flag,
    "blockOwnerDeletion": _flag,
}

_FIELDS: dict[str, _Cleaner] = {
    "name": _text,
    "generateName": _text,
    "namespace": _text,
    "uid": _text,
    "resourceVersion": _text,
    "generation": _integer,
    "creationTimestamp": _time,
    "deletionTimestamp": _time,
    "deletionGracePeriodSeconds": _integer,
    "labels": _text_map,
    "annotations": _text_map,
    "finalizers": _texts,
    "ownerReferences": _owners,
    "managedFields": _dropped,
    "selfLink": _dropped,
}
