"""The CustomResourceDefinition of a kind, generated."""

from __future__ import annotations

import copy
from typing import Any

from quorate.api.kind import Kind, all_kinds
from quorate.api.schema import structural_schema

#: Marks a CRD as ours: ``quorate crds apply`` never overwrites one that exists without it.
MANAGED_BY_LABEL = ("app.kubernetes.io/managed-by", "quorate")

_HEADER = "# Generated from the declarations in src/quorate/api by `python -m quorate.api.generate`. Do not edit.\n"


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    """One kind as a CRD manifest."""
    names: dict[str, Any] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": copy.deepcopy(structural_schema(kind))},
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            | ({"priority": column.priority} if column.priority else {})
            | ({"description": column.description} if column.description else {})
            for column in kind.columns
        ],
    }
    if kind.status_subresource:
        version["subresources"] = {"status": {}}
    if kind.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable_fields]
    label, value = MANAGED_BY_LABEL
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.qualified_resource, "labels": {label: value}},
        "spec": {"group": kind.group, "names": names, "scope": kind.scope.value, "versions": [version]},
    }


def all_definitions() -> tuple[dict[str, Any], ...]:
    """Every kind that needs a CRD, in a stable order."""
    return tuple(custom_resource_definition(kind) for kind in all_kinds() if kind.crd)


def manifest(definition: dict[str, Any]) -> str:
    """A definition as a YAML file, for ``kubectl apply`` and for reading."""
    import yaml  # here: only this function needs it, and it is slow to import

    return _HEADER + yaml.safe_dump(definition, sort_keys=False, width=120, allow_unicode=True)
