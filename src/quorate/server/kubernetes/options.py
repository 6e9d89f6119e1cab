"""Query parameters and DeleteOptions, read and checked: what a request wants beside its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorate.engine.embedded import FieldValidation, parse_version
from quorate.engine.selectors import EVERYTHING, Selector, parse_fields, parse_labels
from quorate.errors import BadRequest, Cause
from quorate.server.kubernetes.status import invalid_options

#: Of the 64 bits that Kubernetes gives it.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Of POST, PUT and PATCH."""

    dry_run: bool = False
    field_validation: FieldValidation = FieldValidation.WARN


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Of DELETE, from its body or its query. The propagation policy is checked and not kept: nothing is propagated."""

    dry_run: bool = False
    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Of a list or a watch."""

    labels: Selector = EVERYTHING
    fields: Selector = EVERYTHING
    watch: bool = False
    limit: int = 0
    continue_token: str = ""
    #: None: not given. 0: any version will do.
    resource_version: int | None = None
    #: The list must be exactly at resource_version, not only at least.
    exact: bool = False
    timeout: float | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None


def write_options(query: Mapping[str, str], name: str) -> WriteOptions:
    """Options of a write; ``name`` is what Kubernetes calls them: CreateOptions, UpdateOptions, PatchOptions."""
    causes = []
    dry_run = query.get("dryRun", "All")
    if dry_run != "All":
        causes.append(_unsupported("dryRun", f'["{dry_run}"]', '"All"'))
    validation = query.get("fieldValidation", "")
    if validation not in ("", *FieldValidation):
        causes.append(_unsupported("fieldValidation", f'"{validation}"', '"", "Ignore", "Strict", "Warn"'))
    if name == "PatchOptions" and _boolean(query, "force"):
        causes.append(Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))
    if causes:
        raise invalid_options(name, causes)
    return WriteOptions("dryRun" in query, FieldValidation(validation or "Warn"))


def delete_options(query: Mapping[str, str], body: Any) -> DeleteOptions:
    """Options of a deletion; the body wins over the query."""
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise BadRequest("the body of a DELETE must be DeleteOptions")
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise BadRequest(f"the body of a DELETE must be DeleteOptions, got {body['kind']}")
    dry_run = body.get("dryRun") or [value for name, value in query.items() if name == "dryRun"]
    policy = body.get("propagationPolicy") or query.get("propagationPolicy") or "Background"
    causes = []
    if dry_run not in ([], ["All"]):
        causes.append(_unsupported("dryRun", str(dry_run).replace("'", '"'), '"All"'))
    if policy not in ("Foreground", "Background", "Orphan"):
        causes.append(_unsupported("propagationPolicy", f'"{policy}"', '"Foreground", "Background", "Orphan", "nil"'))
    if "orphanDependents" in body and "propagationPolicy" in body:
        problem = "Invalid value: orphanDependents and propagationPolicy cannot be both set"
        causes.append(Cause("FieldValueInvalid", problem, "propagationPolicy"))
    if causes:
        raise invalid_options("DeleteOptions", causes)
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise BadRequest("preconditions must be an object with uid and resourceVersion")
    return DeleteOptions(bool(dry_run), _text(preconditions, "uid"), _text(preconditions, "resourceVersion"))


def list_options(query: Mapping[str, str]) -> ListOptions:
    """Options of a list or a watch."""
    watch = _boolean(query, "watch")
    match = query.get("resourceVersionMatch", "")
    initial = _boolean(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    version = query.get("resourceVersion", "")
    causes = _match_causes(match, version) if not watch else _watch_causes(match, initial)
    if not watch and initial is not None:
        causes.append(
            Cause("FieldValueForbidden", "Forbidden: sendInitialEvents is forbidden for list", "sendInitialEvents")
        )
    if causes:
        raise invalid_options("ListOptions", causes)
    if query.get("continue") and version not in ("", "0"):
        raise BadRequest("a continue token brings its own resource version: specifying another is not allowed")
    limit = max(_integer(query, "limit") or 0, 0)
    timeout = _integer(query, "timeoutSeconds")
    number = parse_version(version) if version else None
    return ListOptions(
        labels=_selector(parse_labels, query.get("labelSelector", "")),
        fields=_selector(parse_fields, query.get("fieldSelector", "")),
        watch=watch,
        limit=limit,
        continue_token=query.get("continue", ""),
        resource_version=number,
        exact=match == "Exact" or (match == "" and limit > 0 and bool(number)),
        timeout=float(timeout) if timeout and timeout > 0 else None,
        bookmarks=_boolean(query, "allowWatchBookmarks"),
        send_initial_events=initial,
    )


def _match_causes(match: str, version: str) -> list[Cause]:
    field = "resourceVersionMatch"
    if match not in ("", "Exact", "NotOlderThan"):
        return [_unsupported(field, f'"{match}"', '"Exact", "NotOlderThan", ""')]
    if match and not version:
        said = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        return [Cause("FieldValueForbidden", f"Forbidden: {said}", field)]
    if match == "Exact" and version == "0":
        said = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        return [Cause("FieldValueForbidden", f"Forbidden: {said}", field)]
    return []


def _watch_causes(match: str, initial: bool | None) -> list[Cause]:
    field = "resourceVersionMatch"
    if initial is None and match:
        said = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [Cause("FieldValueForbidden", f"Forbidden: {said}", field)]
    if initial is not None and match != "NotOlderThan":
        said = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        return [Cause("FieldValueForbidden", f"Forbidden: {said}", field)]
    return []


def _unsupported(field: str, value: str, supported: str) -> Cause:
    return Cause("FieldValueNotSupported", f"Unsupported value: {value}: supported values: {supported}", field)


def _boolean(query: Mapping[str, str], name: str) -> bool:
    """Kubernetes' reading: present is true, unless it says otherwise."""
    return name in query and query[name].lower() not in ("false", "0")


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not _WHOLE_NUMBER.fullmatch(text):
        shown = f"{text[:40]}…" if len(text) > 40 else text
        raise BadRequest(f'{name}: Invalid value: "{shown}": must be a whole number of at most 18 digits')
    return int(text)


def _text(preconditions: dict[str, Any], name: str) -> str | None:
    value = preconditions.get(name)
    if not isinstance(value, str | None):
        raise BadRequest(f"preconditions.{name} must be a text")
    return value


def _selector(parse: Any, text: str) -> Selector:
    try:
        found: Selector = parse(text)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return found
