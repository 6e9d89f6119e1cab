"""The OpenAPI document: schemas from the messages' descriptors, paths from the tables that are served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from quorate import __version__
from quorate.server.broker.description import all_enums, all_messages, default_of, short_name
from quorate.server.broker.http import ASKED_BY_MESSAGE, PREFIX
from quorate.server.broker.json_trees import BOUNDS, FREE_FORM
from quorate.server.broker.questions import Question
from quorate.server.broker.walle import TASKS

Json = dict[str, Any]

_FAILURES: Final = {
    "400": "The message is malformed; the reason names the field",
    "401": "Nobody's token, or none",
    "403": "A page of another origin asks, or somebody for what is another's",
    "413": "The body is too large",
    "500": "An error of the server",
}


def document(beside: Mapping[str, Json] | None = None) -> Json:
    """All of it; ``beside`` are paths that this server has besides the broker's own."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Quorate maintenance broker",
            "version": __version__,
            "summary": "Who may take what down, now, and why not",
            "description": (
                f"Besides what is listed, GET {PREFIX}/events is a stream of server-sent events, each with a TChange:"
                " what happens to the requests and permissions of User, or to RequestId. GET /cms is a page with the"
                " log."
            ),
        },
        "paths": {
            **{f"{PREFIX}/{question.path}": _asked(question) for question in ASKED_BY_MESSAGE},
            **_OTHERS,
            **_WALLE,
            **(beside or {}),
        },
        "components": {
            "schemas": {
                **{_key(message): _message(message) for message in all_messages()},
                **{_key(enum): {"type": "string", "enum": [v.name for v in enum.values]} for enum in all_enums()},
                **_PLAIN,
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
        "security": [{}, {"token": []}, {"certificate": []}],
    }


def operation(summary: str, answer: Json, *, failures: Mapping[str, str] | None = None, **more: Any) -> Json:
    """One method of a path; ``answer`` is the schema of its 200."""
    problems = {"401": _FAILURES["401"], "403": _FAILURES["403"], "500": _FAILURES["500"], **(failures or {})}
    return {
        "summary": summary,
        "responses": {
            "200": _response("Answered", answer),
            **{code: _response(text, ref("Failure")) for code, text in problems.items()},
        },
        **more,
    }


def body(schema: Json) -> Json:
    """A body that must be given."""
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def ref(name: str) -> Json:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Json) -> Json:
    """The same, or null: which means that it is not given."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}


def parameter(name: str, place: str, schema: Json) -> Json:
    """A query or path parameter."""
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _response(text: str, schema: Json) -> Json:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _asked(question: Question) -> Json:
    answer = ref(_key(question.response))
    failures = {code: _FAILURES[code] for code in ("400", "413")}
    summary = f"{question.request.name}, answered with {question.response.name}"
    found = {
        "post": operation(summary, answer, failures=failures, requestBody=body(ref(_key(question.request)))),
    }
    if question.bare:
        found["get"] = operation(f"{summary}, with nothing said", answer, failures=failures)
    return found


def _key(descriptor: Descriptor | EnumDescriptor) -> str:
    return short_name(descriptor)


def _message(message: Descriptor) -> Json:
    return {
        "type": "object",
        "properties": {field.name: _field(field) for field in message.fields},
        "additionalProperties": False,
    }


def _field(field: FieldDescriptor) -> Json:
    if field.message_type is not None:
        free = field.message_type.full_name == FREE_FORM
        one: Json = {"type": "object"} if free else ref(_key(field.message_type))
    elif field.enum_type is not None:
        one = ref(_key(field.enum_type))
    else:
        one = _scalar(field)
    whole = nullable({"type": "array", "items": one} if field.is_repeated else one)
    return {**whole, "default": default_of(field)} if field.has_default_value else whole


def _scalar(field: FieldDescriptor) -> Json:
    if field.type == FieldDescriptor.TYPE_STRING:
        return {"type": "string"}
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"type": "boolean"}
    least, most = BOUNDS[field.type]
    number = {"type": "integer", "minimum": least, "maximum": most}
    if field.type != FieldDescriptor.TYPE_UINT64:
        return number
    # As protobuf's JSON writes it: text. Read either way.
    return {"anyOf": [{"type": "string", "pattern": _UP_TO_UINT64}, number]}


def _up_to(most: int) -> str:
    """A pattern of the decimal numbers from 0 to that one, without more digits than it has."""
    digits = str(most)
    shorter = [f"[0-9]{{1,{len(digits) - 1}}}"]
    smaller = [
        f"{digits[:place]}[0-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "0"
    ]
    return f"^({'|'.join([*shorter, *smaller, digits])})$"


_UP_TO_UINT64: Final = _up_to(BOUNDS[FieldDescriptor.TYPE_UINT64][1])
_TEXTS: Final[Json] = {"type": "array", "items": {"type": "string"}}
_TASK_FIELDS: Final[Json] = {
    "id": {"type": "string"},
    "hosts": _TEXTS,
    "devices": _TEXTS,
    "status": {"type": "string", "enum": ["ok", "in-process", "rejected"]},
}

_PLAIN: Final[Json] = {
    "Failure": {
        "type": "object",
        "properties": {"Status": ref("TStatus"), "message": {"type": "string"}},
    },
    "WalleNewTask": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "action": {"type": "string", "minLength": 1},
            "type": {"type": "string"},
            "issuer": {"type": "string"},
            "hosts": _TEXTS,
            "devices": _TEXTS,
        },
        "required": ["id", "action", "hosts"],
    },
    "WalleListedTask": {"type": "object", "properties": _TASK_FIELDS, "required": [*_TASK_FIELDS]},
    "WalleTask": {
        "type": "object",
        "properties": {**_TASK_FIELDS, "message": {"type": "string"}},
        "required": [*_TASK_FIELDS, "message"],
    },
}

_NUMBER: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_MOMENT: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
_FLAG: Final[Json] = {"type": "string", "enum": ["0", "1", "false", "true"]}

_OTHERS: Final[Json] = {
    f"{PREFIX}/json/log": {
        "get": operation(
            "The newest records of the log, oldest first",
            ref("TGetLogTailResponse"),
            failures={"400": _FAILURES["400"]},
            parameters=[
                parameter("limit", "query", _NUMBER),
                parameter("from", "query", _MOMENT),
                parameter("to", "query", _MOMENT),
                parameter("detailed", "query", _FLAG),
                parameter("data", "query", _FLAG),
            ],
        )
    },
    f"{PREFIX}/json/proto": {"get": operation("What the messages look like", {"type": "object"})},
    f"{PREFIX}/json/sentinel": {"get": operation("Not supported", ref("Failure"))},
}

_TASK_ID: Final = parameter("id", "path", {"type": "string", "minLength": 1})
_WRONG: Final = {"408": "No answer in time", "413": _FAILURES["413"]}

_WALLE: Final[Json] = {
    TASKS: {
        "get": operation(
            "Wall-E's tasks",
            {
                "type": "object",
                "properties": {"result": {"type": "array", "items": ref("WalleListedTask")}},
                "required": ["result"],
            },
            failures={"408": _WRONG["408"]},
        ),
        "post": operation(
            "May a task of Wall-E go on?",
            ref("WalleTask"),
            failures={"400": _FAILURES["400"], **_WRONG},
            parameters=[parameter("dry_run", "query", {"type": "boolean"})],
            requestBody=body(ref("WalleNewTask")),
        ),
    },
    f"{TASKS}/{{id}}": {
        "get": operation(
            "May it go on now?",
            ref("WalleTask"),
            failures={"404": "There is no such task", **_WRONG},
            parameters=[_TASK_ID],
        ),
        "delete": {
            "summary": "It is over: its request and its permissions go",
            "parameters": [_TASK_ID],
            "responses": {
                "204": {"description": "It is gone"},
                **{
                    code: _response(text, ref("Failure"))
                    for code, text in {"404": "There is no such task", **_FAILURES, **_WRONG}.items()
                },
            },
        },
    },
}
