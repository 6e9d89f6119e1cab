"""The files of ``examples/``, as objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from quorate.api import all_kinds
from quorate.api.codec import convert, to_dict
from quorate.api.meta import Resource
from quorate.engine.store import Store
from quorate.errors import AlreadyExists

DIRECTORY = Path(__file__).parents[2] / "examples"
FILES = tuple(sorted(path.name for path in DIRECTORY.glob("*.yaml")))

_KINDS = {(kind.api_version, kind.name): kind.type for kind in all_kinds()}


def documents(file: str) -> list[dict[str, Any]]:
    """As written."""
    return list(yaml.safe_load_all((DIRECTORY / file).read_text()))


def resources(file: str) -> list[Resource]:
    """As objects."""
    return [_resource(document) for document in documents(file)]


def _resource(document: dict[str, Any]) -> Resource:
    body = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    return convert(_KINDS[document["apiVersion"], document["kind"]], body)


async def apply(store: Store, file: str) -> None:
    """What ``kubectl apply -f`` does, as far as these files go."""
    for obj in resources(file):
        try:
            await store.create(obj)
        except AlreadyExists:
            body = to_dict(obj)
            await store.patch(type(obj), obj.name, patch={"spec": body["spec"]})
