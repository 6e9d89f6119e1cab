"""What a write does to an object, as Kubernetes defines it for custom resources: pure functions over trees.

    received          what somebody sent, understood: types of metadata, unknown fields, defaults
    created           a new object from it
    updated           the stored object with a change made to it; None when nothing changes
    marked_deleted    the stored object with its deletion asked for; None when it is so already

They raise the API error that an API server answers with, same code, same reason, same fields. Time, randomness and
the version to write are inputs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from quorate.api.kind import Kind
from quorate.engine.embedded import admission, causes, metadata, names, namespaces
from quorate.engine.embedded.record import FieldValidation, Record, Tree, version_number
from quorate.engine.embedded.schema import KindSchema, same
from quorate.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Conflict,
    InternalError,
    Invalid,
    NotFound,
    TooLarge,
)

#: The largest object, in bytes of JSON: what etcd takes by default.
OBJECT_LIMIT = 1536 * 1024
#: The most values in one object: reading and comparing them takes longer than their bytes say.
VALUES_LIMIT = 100_000


class KindRules:
    """Everything about a kind that decides how its objects may be written."""

    __slots__ = ("kind", "name_rule", "schema")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.schema = KindSchema(kind)
        self.name_rule = names.dns_label if namespaces.is_namespace(kind) else names.dns_subdomain


class Received(msgspec.Struct, frozen=True):
    """A request's object, understood but not yet judged."""

    tree: Tree
    warnings: tuple[str, ...]


def received(
    rules: KindRules,
    body: Any,
    old: Tree | None = None,
    *,
    patch: bool = False,
    validation: FieldValidation = FieldValidation.IGNORE,
    problems: tuple[str, ...] = (),
) -> Received:
    """What somebody sent, or what a patch of ``old`` made.

    ``problems`` are those found while parsing (duplicate fields). A ``patch`` that makes no sense is Invalid where
    a whole object that makes none is a BadRequest: Kubernetes has it so.
    """
    if old is None or not _same_type(body, old):
        _check_type(rules.kind, body, patch=patch)
    unknown: list[str] = []
    if old is not None and body.get("metadata") is old["metadata"]:
        cleaned = old["metadata"]
    else:
        try:
            cleaned = metadata.clean(body.get("metadata"), unknown)
        except metadata.Malformed as error:
            raise _senseless(rules.kind, str(error), patch=patch) from None
    dropped: list[str] = []
    shaped = rules.schema.shape(body, old, dropped)
    complaints = [*problems]
    if unknown or dropped:
        complaints += [f'unknown field "{path}"' for path in (*unknown, *sorted(dropped))]
    if complaints and validation is FieldValidation.STRICT:
        raise _senseless(rules.kind, f"strict decoding error: {', '.join(complaints)}", patch=patch)
    warnings = tuple(complaints) if validation is FieldValidation.WARN else ()
    return Received(shaped if cleaned is shaped.get("metadata") else {**shaped, "metadata": cleaned}, warnings)


def scoped(kind: Kind, meta: Tree, namespace: str) -> Tree:
    """Metadata with the request's namespace, which it must not contradict; a cluster-scoped object has none."""
    if not kind.namespaced:
        return {name: value for name, value in meta.items() if name != "namespace"}
    if meta.get("namespace", namespace) != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    return {**meta, "namespace": namespace} if namespace else meta


def created(rules: KindRules, tree: Tree, *, version: int, now: datetime, uid: str) -> Record:
    """The first state of a new object. Its name has been chosen; version 0 is a dry run's."""
    kind = rules.kind
    meta = {
        name: value
        for name, value in tree["metadata"].items()
        if name not in ("resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
    }
    meta["uid"] = uid
    meta["creationTimestamp"] = metadata.timestamp(now)
    if kind.crd:
        # Kubernetes' own kinds that we serve have no generation.
        meta["generation"] = 1
    if version:
        meta["resourceVersion"] = str(version)
    tree = {**tree, "metadata": meta}
    if kind.status_subresource and kind.qualified_resource != "nodes":
        # A kubelet registers its Node complete; everywhere else status is what a controller finds out.
        tree.pop("status", None)
    if namespaces.is_namespace(kind):
        tree = namespaces.established(tree)
        meta = tree["metadata"]
    found = metadata.name_problems(meta, rules.name_rule)
    if kind.namespaced:
        found += _namespace_problems(meta)
    return _record(rules, tree, None, None, version, found + metadata.problems(meta))


def updated(
    rules: KindRules, old: Record, before: Tree, new: Tree, *, version: int, status: bool, patch: bool
) -> Record | None:
    """The next state of an object, or None when the change changes nothing. ``before`` is the tree of ``old``.

    Through the status subresource only status changes; through the object itself everything else.
    """
    kind, name = rules.kind, old.name
    meta = new["metadata"]
    _check_identity(kind, old, meta, patch=patch)
    if status:
        tree = {**before, "status": new["status"]} if "status" in new else _without(before, "status")
        return _next(rules, tree, old, before, version, [], part="status")
    if meta is not before["metadata"]:
        meta = _kept(scoped(kind, meta, old.namespace), before["metadata"])
    tree = {**new, "metadata": meta}
    if kind.status_subresource:
        tree = {**tree, "status": before["status"]} if "status" in before else _without(tree, "status")
    if kind.crd and _differs(tree, before):
        meta = {**meta, "generation": before["metadata"].get("generation", 0) + 1}
        tree["metadata"] = meta
    found = []
    if meta is not before["metadata"]:
        found = metadata.problems(meta) + metadata.change_problems(meta, before["metadata"])
    assert meta["name"] == name
    record = _next(rules, tree, old, before, version, found)
    admission.check_labels(kind, name, meta, before["metadata"])
    return record


def check_deletion(old: Record, *, uid: str | None, resource_version: str | None) -> None:
    """Raise Conflict when the object is not the one that was to be deleted."""
    found_uid, found_version = old.typed.metadata.uid, str(old.version)
    if uid is not None and uid != found_uid:
        raise _conflict(
            old.kind,
            old.name,
            f"the UID in the precondition ({uid}) does not match the UID in record ({found_uid})."
            " The object might have been deleted and then recreated",
            resource=False,
        )
    if resource_version is not None and resource_version != found_version:
        raise _conflict(
            old.kind,
            old.name,
            f"the ResourceVersion in the precondition ({resource_version}) does not match the ResourceVersion in"
            f" record ({found_version}). The object might have been modified",
            resource=False,
        )


def marked_deleted(rules: KindRules, old: Record, *, version: int, now: datetime) -> Record | None:
    """An object that finalizers hold, with its deletion asked for; None when that was done before."""
    before = old.tree
    meta = before["metadata"]
    if "deletionTimestamp" in meta:
        return None
    meta = {**meta, "deletionTimestamp": metadata.timestamp(now), "deletionGracePeriodSeconds": 0}
    if "generation" in meta:
        meta["generation"] += 1
    tree = {**before, "metadata": meta}
    if namespaces.is_namespace(rules.kind):
        tree = namespaces.terminating(tree)
    return _next(rules, tree, old, before, version, [])


def held(record: Record) -> bool:
    """Whether finalizers keep the object."""
    return bool(record.typed.metadata.finalizers)


def not_found(kind: Kind, name: str) -> NotFound:
    """The answer when there is no such object."""
    return NotFound(f'{kind.qualified_resource} "{name}" not found', group=kind.group, kind=kind.plural, name=name)


def already_exists(existing: Record) -> AlreadyExists:
    """The answer when the name of a new object is taken."""
    kind, name = existing.kind, existing.name
    being_deleted = "object is being deleted: " if existing.typed.deleting else ""
    message = f'{being_deleted}{kind.qualified_resource} "{name}" already exists'
    return AlreadyExists(message, group=kind.group, kind=kind.plural, name=name)


def unwritable(kind: Kind, error: UnicodeEncodeError | RecursionError, *, patch: bool = False) -> ApiError:
    """The answer to what a JSON parser accepts and JSON cannot hold."""
    deep = isinstance(error, RecursionError)
    return _senseless(kind, "it is nested too deeply" if deep else "it has text that is not Unicode", patch=patch)


def stale(kind: Kind, name: str) -> Conflict:
    """The answer to a write that was decided on an old state."""
    reason = "the object has been modified; please apply your changes to the latest version and try again"
    return _conflict(kind, name, reason)


def _conflict(kind: Kind, name: str, reason: str, *, resource: bool = True) -> Conflict:
    what = kind.plural if resource else kind.name
    qualified = f"{what}.{kind.group}" if kind.group else what
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {reason}'
    return Conflict(message, group=kind.group, kind=what, name=name)


def _same_type(body: Any, old: Tree) -> bool:
    """Whether it is what it was before."""
    return type(body) is dict and body.get("kind") is old["kind"] and body.get("apiVersion") is old["apiVersion"]


def _check_type(kind: Kind, body: Any, *, patch: bool) -> None:
    if not isinstance(body, dict):
        raise _senseless(kind, "an object was expected", patch=patch)
    if not body.get("kind") or not isinstance(body["kind"], str):
        raise _senseless(kind, "Object 'Kind' is missing", patch=patch)
    version = body.get("apiVersion")
    faults = []
    if body["kind"] != kind.name:
        faults.append(causes.invalid("kind", body["kind"], f"must be {kind.name}"))
    if version != kind.api_version:
        if not patch:
            raise BadRequest(
                f"the API version in the data ({version or ''}) does not match"
                f" the expected API version ({kind.api_version})"
            )
        faults.append(causes.invalid("apiVersion", version, f"must be {kind.api_version}"))
    if faults:
        meta = body.get("metadata")
        raise causes.refusal(kind, str(meta.get("name", "")) if isinstance(meta, dict) else "", faults)


def _senseless(kind: Kind, problem: str, *, patch: bool) -> BadRequest | Invalid:
    if patch:
        cause = causes.invalid("patch", "", problem)
        return Invalid(f'"" is invalid: patch: {cause.message}', causes=(cause,))
    return BadRequest(f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {problem}')


def _namespace_problems(meta: Tree) -> list[Cause]:
    namespace = meta.get("namespace", "")
    if not namespace:
        return [causes.required("metadata.namespace")]
    return [causes.invalid("metadata.namespace", namespace, problem) for problem in names.dns_label(namespace)]


def _check_identity(kind: Kind, old: Record, meta: Tree, *, patch: bool) -> None:
    """Whether what was sent is meant for this object, in this state."""
    name = meta.get("name", "")
    if not name:
        raise BadRequest(f"the name of the object ({old.name} based on URL) was undeterminable: name must be provided")
    if name != old.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({old.name})")
    uid = meta.get("uid", "")
    if uid and not patch and uid != old.typed.metadata.uid:
        raise _conflict(
            kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object: {old.typed.metadata.uid}"
        )
    sent = meta.get("resourceVersion", "")
    if sent == str(old.version):
        return
    version = version_number(sent)
    if version is None:
        raise InternalError(f"metadata.resourceVersion: {sent[:40]!r} is not a version of an object")
    if version:
        raise stale(kind, name)
    # Kubernetes lets the core kinds be overwritten blindly, nothing else.
    if kind.group:
        fault = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise causes.refusal(kind, name, [fault], resource=True)


def _kept(new: Tree, old: Tree) -> Tree:
    """New metadata with what an update cannot change, or need not repeat, taken from the old."""
    kept = {"uid": old["uid"], "deletionGracePeriodSeconds": old.get("deletionGracePeriodSeconds")} | new
    for name in ("generation", "creationTimestamp", "resourceVersion"):
        kept[name] = old.get(name)
    if "deletionTimestamp" in old:
        kept["deletionTimestamp"] = old["deletionTimestamp"]
    return {name: value for name, value in kept.items() if value is not None}


def _without(tree: Tree, name: str) -> Tree:
    return {key: value for key, value in tree.items() if key != name}


def _differs(tree: Tree, before: Tree) -> bool:
    """Whether anything but metadata does."""
    return len(tree) != len(before) or any(
        name != "metadata" and not same(part, before.get(name)) for name, part in tree.items()
    )


def _next(
    rules: KindRules, tree: Tree, old: Record, before: Tree, version: int, found: list[Cause], *, part: str = ""
) -> Record | None:
    if not found and same(tree, before):
        return None
    tree = {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(version)}}
    return _record(rules, tree, old, before, version, found, part=part)


def _check_size(kind: Kind, meta: Tree, raw: bytes) -> None:
    """Before anything else: what is too large is not worth judging, which takes longest of all."""
    what = f'{kind.qualified_resource} "{str(meta.get("name", ""))[:80]}"'
    if len(raw) > OBJECT_LIMIT:
        raise TooLarge(f"{what} would have {len(raw)} bytes; {OBJECT_LIMIT} are allowed")
    # Counted by what is between them; those in texts count as well, and nobody comes near in either way.
    if len(raw) > VALUES_LIMIT and raw.count(b",") > VALUES_LIMIT:
        raise TooLarge(f"{what} would have more than {VALUES_LIMIT} values")


def _record(
    rules: KindRules,
    tree: Tree,
    old: Record | None,
    before: Tree | None,
    version: int,
    found: list[Cause],
    *,
    part: str = "",
) -> Record:
    meta = tree["metadata"]
    raw = msgspec.json.encode(tree)
    _check_size(rules.kind, meta, raw)
    last = None if old is None else old.typed
    typed, faults = rules.schema.judge(raw, tree, before, last, found=found, part=part)
    if faults or typed is None:
        raise causes.refusal(rules.kind, meta.get("name", ""), faults)
    return Record(rules.kind, meta.get("namespace", ""), meta["name"], version, raw, typed)
