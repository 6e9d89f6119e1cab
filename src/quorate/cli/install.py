"""Installing our CRDs into a cluster: all of them or a clear reason why not.

Some of our API groups have other owners elsewhere. A definition that exists without our label is theirs: nothing is
written, to any of them, until a person has decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from quorate.api.crd import MANAGED_BY_LABEL
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.transport import Transport
from quorate.errors import ForeignDefinition, NotFound, ServerTimeout

Json = dict[str, Any]

_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PATIENCE = 30.0
_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one definition: created, configured or unchanged."""

    name: str
    result: str


async def install(
    transport: Transport, definitions: tuple[Json, ...], *, clock: Clock, dry_run: bool = False
) -> list[Outcome]:
    """Create or update every definition and wait until the server serves them."""
    existing = {name: await _read(transport, name) for name in map(_name, definitions)}
    refuse_foreign(existing)
    outcomes = [await _write(transport, wanted, existing[_name(wanted)], dry_run) for wanted in definitions]
    if not dry_run:
        for wanted in definitions:
            await _established(transport, _name(wanted), clock)
    return outcomes


def refuse_foreign(existing: dict[str, Json | None]) -> None:
    """Raises ForeignDefinition naming every definition that is there without our label."""
    label, ours = MANAGED_BY_LABEL
    foreign = [
        name for name, found in existing.items() if found and found["metadata"].get("labels", {}).get(label) != ours
    ]
    if foreign:
        raise ForeignDefinition(
            f"these CRDs exist and are not Quorate's: {', '.join(foreign)}. Nothing was changed. "
            f"If they may be replaced, label each: kubectl label crd <name> {label}={ours}"
        )


def problem_of(definition: Json) -> str:
    """Why the server does not serve a definition yet, empty when it does."""
    conditions = {found["type"]: found for found in definition.get("status", {}).get("conditions", [])}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    refused = [found.get("message", "") for found in conditions.values() if found["status"] == "False"]
    return "; ".join(filter(None, refused)) or "the server has not looked at it yet"


async def _read(transport: Transport, name: str) -> Json | None:
    try:
        found: Json = msgspec.json.decode(await transport.read(f"{_COLLECTION}/{name}"))
    except NotFound:
        return None
    return found


async def _write(transport: Transport, wanted: Json, existing: Json | None, dry_run: bool) -> Outcome:
    query = "?fieldManager=quorate" + ("&dryRun=All" if dry_run else "")
    name = _name(wanted)
    if existing is None:
        await transport.write("POST", _COLLECTION + query, msgspec.json.encode(wanted))
        return Outcome(name, "created")
    # Replaced, not merged: a property that is gone from the schema must go from the server too.
    labels = {**existing["metadata"].get("labels", {}), **wanted["metadata"]["labels"]}
    body = existing | {"metadata": existing["metadata"] | {"labels": labels}, "spec": wanted["spec"]}
    answer = await transport.write("PUT", f"{_COLLECTION}/{name}{query}", msgspec.json.encode(body))
    generation = msgspec.json.decode(answer)["metadata"]["generation"]
    return Outcome(name, "unchanged" if generation == existing["metadata"]["generation"] else "configured")


async def _established(transport: Transport, name: str, clock: Clock) -> None:
    deadline = clock.monotonic() + _PATIENCE
    while problem := problem_of(await _read(transport, name) or {}):
        if clock.monotonic() > deadline:
            raise ServerTimeout(f"{name} was written but is not served after {_PATIENCE:g} s: {problem}")
        await clock.sleep(_PAUSE)


def _name(definition: Json) -> str:
    name: str = definition["metadata"]["name"]
    return name
