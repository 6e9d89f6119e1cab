"""What a URL points at: a kind, and maybe a namespace, an object, its status.

/api/v1/namespaces/default/events/e1          core kinds
/apis/<group>/<version>/<plural>[/<name>[/status]]
/apis/<group>/<version>/namespaces/<namespace>/<plural>[/<name>[/status]]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorate.api.kind import Kind


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about. No name: the whole collection. No namespace for a namespaced kind: all of them."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Kinds:
    """The served kinds, found by group, version and plural name."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.all = kinds
        self._by_resource: Mapping[tuple[str, str, str], Kind] = {
            (kind.group, kind.version, kind.plural): kind for kind in kinds
        }

    def versions(self) -> dict[tuple[str, str], tuple[Kind, ...]]:
        """Kinds by group and version, both in order."""
        grouped: dict[tuple[str, str], list[Kind]] = {}
        for kind in sorted(self.all, key=lambda kind: (kind.group, kind.version, kind.plural)):
            grouped.setdefault((kind.group, kind.version), []).append(kind)
        return {key: tuple(kinds) for key, kinds in grouped.items()}

    def resolve(self, group: str, version: str, rest: str) -> Target | None:
        """The target of what follows ``/apis/<group>/<version>/``, or None if nothing is served there."""
        parts = rest.strip("/").split("/")
        namespace = ""
        # namespaces/<name> and namespaces/<name>/status are the Namespace itself; anything longer is inside it.
        if parts[0] == "namespaces" and len(parts) > 2 and not (group == "" and parts[2:] == ["status"]):
            namespace, parts = parts[1], parts[2:]
        kind = self._by_resource.get((group, version, parts[0]))
        if kind is None or not all(parts):
            return None
        name = parts[1] if len(parts) > 1 else ""
        subresource = "/".join(parts[2:])
        if namespace and not kind.namespaced:
            return None
        if kind.namespaced and name and not namespace:
            return None
        return Target(kind, namespace, name, subresource)
