"""What was asked and answered in a scenario, with everything renamed that differs between two runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from tests.conformance.wire import Answer, Wire

#: Text of so many letters is shortened.
LONG = 500

#: So much of a prefix is used in a generated name.
GENERATED_PREFIX = 58

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: Versions are quoted in brackets or as JSON. An early object's may be 9 or 63, and such numbers stand elsewhere too.
_QUOTED = re.compile(r"(?<=[(\"])\d+(?=[)\"])")
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


class Renaming:
    """uids and resourceVersions become ``uid-1``, ``rv-2``, … in the order they appear; times become ``time``."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._versions: set[str] = set()
        self._generated: list[tuple[re.Pattern[str], str]] = []
        self._dates: list[bool] = []

    def expect_generated(self, prefix: str) -> None:
        """Names that a server makes from this prefix end in letters that nobody foresees."""
        pattern = re.compile(re.escape(prefix[:GENERATED_PREFIX]) + r"[a-z0-9]{5}\b")
        self._generated.append((pattern, f"{prefix[:GENERATED_PREFIX]}<generated>"))

    def rename(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.rename(each) for each in value]
        return self._text(value, key) if isinstance(value, str) else value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        table = value.get("kind") == "Table"
        # The version of a whole collection moves with everything else that the server stores.
        collection = table or isinstance(value.get("items"), list) or value.get("type") == "BOOKMARK"
        result: dict[str, Any] = {}
        for key, each in value.items():
            if key == "managedFields":
                continue
            if key == "causes":
                # The real server finds them in the random order of a Go map.
                causes = [{**cause, "message": self._message(cause["message"])} for cause in each]
                result[key] = sorted(causes, key=lambda cause: (cause.get("field", ""), cause["message"]))
                continue
            if key == "message" and value.get("status") == "Failure":
                result[key] = self._message(each)
                continue
            if collection and key in ("metadata", "object"):
                result[key] = self._collection(each)
            elif table and key == "rows":
                result[key] = self._rows(each, value.get("columnDefinitions") or [])
            else:
                result[key] = self.rename(each, key)
        if len((result.get("details") or {}).get("causes") or ()) > 1:
            result["message"] = "all causes"
        return result

    def _collection(self, value: Any) -> Any:
        renamed: dict[str, Any] = {}
        for key, each in value.items():
            if key == "resourceVersion":
                renamed[key] = "rv-of-collection"
            elif key == "metadata":
                renamed[key] = self._collection(each)
            else:
                renamed[key] = self.rename(each, key)
        return renamed

    def _rows(self, rows: list[Any], columns: list[Any]) -> list[Any]:
        if columns:
            self._dates = [column["type"] == "date" for column in columns]
        renamed = []
        for row in rows:
            cells = ["age" if date else cell for date, cell in zip(self._dates, row["cells"], strict=True)]
            renamed.append({**self._object(row), "cells": self.rename(cells)})
        return renamed

    def _text(self, value: str, key: str) -> str:
        if not value:
            return value
        if key == "resourceVersion":
            self._versions.add(value)
            return self._name("rv", value)
        if key == "continue":
            return self._name("continue", value)
        if _TIME.match(value):
            return "time"
        value = _UID.sub(lambda found: self._name("uid", found[0]), value)
        for pattern, name in self._generated:
            value = pattern.sub(name, value)
        return value if len(value) < LONG else f"{value[:40]}… {len(value)} letters"

    def _message(self, value: str) -> str:
        """The words of a refusal, which may quote versions or a whole object."""
        return self._text(_QUOTED.sub(lambda found: self._number(found[0]), value), "message")

    def _number(self, digits: str) -> str:
        return self._name("rv", digits) if digits in self._versions else digits

    def _name(self, what: str, value: str) -> str:
        known = self._names.get((what, value))
        if known is None:
            count = sum(1 for kind, _ in self._names if kind == what)
            known = self._names[what, value] = f"{what}-{count + 1}"
        return known


class Scene:
    """Sends requests for a scenario and keeps the transcript."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.renaming = Renaming()
        self.entries: list[dict[str, Any]] = []

    async def get(self, path: str, **options: Any) -> Any:
        return await self.send("GET", path, **options)

    async def post(self, path: str, body: object, **options: Any) -> Any:
        return await self.send("POST", path, body, **options)

    async def put(self, path: str, body: object, **options: Any) -> Any:
        return await self.send("PUT", path, body, **options)

    async def patch(self, path: str, body: object, content_type: str, **options: Any) -> Any:
        return await self.send("PATCH", path, body, content_type=content_type, **options)

    async def delete(self, path: str, body: object = None, **options: Any) -> Any:
        return await self.send("DELETE", path, body, **options)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        about: str = "",
        query: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        """One request; ``about`` says in the transcript what it tries, where the path does not."""
        if isinstance(body, dict) and (prefix := (body.get("metadata") or {}).get("generateName")):
            self.renaming.expect_generated(prefix)
        answer = await self._wire.request(method, path, body, query=query, **options)
        return self._keep(f"{method} {_shown(path, query)}", about, answer)

    async def watch(self, path: str, query: Mapping[str, str], *, count: int, about: str = "", **options: Any) -> Any:
        answer = await self._wire.watch(path, query, count=count, **options)
        if isinstance(answer.body, list):
            answer = replace(answer, body=[event for event in answer.body if not _is_plain_bookmark(event)])
        return self._keep(f"WATCH {_shown(path, query)}", about, answer)

    def _keep(self, request: str, about: str, answer: Answer) -> Any:
        entry: dict[str, Any] = {"request": self.renaming.rename(request)}
        if about:
            entry["about"] = about
        entry["code"] = answer.code
        if answer.warnings:
            entry["warnings"] = list(answer.warnings)
        entry["answer"] = self.renaming.rename(answer.body)
        self.entries.append(entry)
        return answer.body


def _is_plain_bookmark(event: dict[str, Any]) -> bool:
    """A bookmark that only tells how far the stream is: the real server sends one or not, as its timer happens to run.

    The bookmark that closes a list sent as a stream says so, and is part of the answer.
    """
    if event.get("type") != "BOOKMARK" or "annotations" in event["object"]["metadata"]:
        return False
    assert event["object"].keys() == {"apiVersion", "kind", "metadata"}, event
    assert event["object"]["metadata"].keys() == {"resourceVersion"}, event
    return True


def _shown(path: str, query: Mapping[str, str] | None) -> str:
    given = {key: "…" if key in ("resourceVersion", "continue") else value for key, value in (query or {}).items()}
    return f"{path}?{urlencode(given, safe='…')}" if given else path


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    """What another implementation must have in common: everything but the wording."""
    if entry["code"] < 400:
        return {**entry, "answer": _worded(entry["answer"])}
    # A warning beside a refusal helps nobody, and the real server is alone with it.
    return {**{key: value for key, value in entry.items() if key != "warnings"}, "answer": _refusal(entry["answer"])}


def _worded(answer: Any) -> Any:
    """An answer without what is only words: column descriptions, and messages of errors inside a watch."""
    if isinstance(answer, list):
        return [_refusal(each["object"]) if each.get("type") == "ERROR" else _worded(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    if answer.get("kind") == "Table" and answer.get("columnDefinitions"):
        columns = [{**column, "description": ""} for column in answer["columnDefinitions"]]
        return {**answer, "columnDefinitions": columns}
    return {**answer, "object": _worded(answer["object"])} if "object" in answer else answer


def _refusal(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return "text"
    details = dict(answer.get("details") or {})
    if "causes" in details:
        # As a set: the real server checks the metadata of custom resources twice, and says everything twice.
        details["causes"] = sorted({(cause.get("field", ""), cause["reason"]) for cause in details["causes"]})
    # The real server leaves the reason of some internal errors out.
    reason = answer.get("reason") or ("InternalError" if answer.get("code") == 500 else "")
    return {**{key: value for key, value in answer.items() if key != "message"}, "reason": reason, "details": details}


def contained(part: Any, whole: Any) -> bool:
    """Whether everything that ``part`` says is also said by ``whole``: for kinds of which we keep less."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and contained(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(contained, part, whole))
    return bool(part == whole)
