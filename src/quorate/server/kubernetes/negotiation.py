"""Which representation a client asked for: the ``Accept`` header.

Kubernetes clients list what they can read, best first: a Table for people, the bare metadata for caches, the
object itself as JSON or YAML. Protobuf is not spoken here, so a client that prefers it must also accept JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from quorate.errors import NotAcceptable


class Form(Enum):
    """What is sent: the object, its row in a table, or its metadata only."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Format(StrEnum):
    """How it is written."""

    JSON = "application/json"
    YAML = "application/yaml"


@dataclass(frozen=True, slots=True)
class Representation:
    """The outcome of the negotiation."""

    form: Form = Form.OBJECT
    format: Format = Format.JSON


@dataclass(frozen=True, slots=True)
class Clause:
    """One alternative of an Accept header."""

    media_type: str
    parameters: dict[str, str]
    quality: float


def clauses(accept: str) -> list[Clause]:
    """The alternatives, best first; equal ones in the client's order. Those of quality 0 are refusals."""
    parsed = [_clause(text) for text in accept.split(",") if text.strip()]
    return sorted((clause for clause in parsed if clause.quality > 0), key=lambda clause: -clause.quality)


def negotiate(accept: str, *, many: bool = False, formats: tuple[Format, ...] = tuple(Format)) -> Representation:
    """The best representation that we have of an object, or of a list (``many``); NotAcceptable if there is none."""
    for clause in clauses(accept or "*/*"):
        format_ = _format(clause.media_type)
        form = _form(clause.parameters, many=many)
        if format_ in formats and form is not None:
            return Representation(form, format_)
    raise NotAcceptable(f"only the following media types are accepted: {', '.join(formats)}")


def _clause(text: str) -> Clause:
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters = dict(part.split("=", 1) for part in rest if "=" in part)
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 0.0
    return Clause(media_type.lower(), parameters, quality)


def _format(media_type: str) -> Format | None:
    if media_type in ("*/*", "application/*"):
        return Format.JSON
    try:
        return Format(media_type)
    except ValueError:
        return None


def _form(parameters: dict[str, str], *, many: bool) -> Form | None:
    wanted = parameters.get("as", "")
    if not wanted:
        return Form.OBJECT
    if (parameters.get("g"), parameters.get("v")) != ("meta.k8s.io", "v1"):
        return None
    metadata = Form.METADATA.value + ("List" if many else "")
    return {Form.TABLE.value: Form.TABLE, metadata: Form.METADATA}.get(wanted)
