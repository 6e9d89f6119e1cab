"""A document's text as a tree: YAML or JSON, in which no key is given twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from typing import Any

import yaml

from quorate.errors import ConfigError


def tree(text: str) -> object:
    """Parse it; raises ConfigError with the line."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_mapping)
        except json.JSONDecodeError:
            # A mapping of YAML may begin with a brace as well.
            pass
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"is neither YAML nor JSON: {' '.join(str(error).split())}") from error


class _Loader(yaml.CSafeLoader):
    """YAML that takes no second opinion on a key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        counted = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        twice = next((key for key, times in counted.items() if times > 1), None)
        if twice is not None:
            raise ConfigError(f"line {node.start_mark.line + 1}: the key {twice!r} is given twice")
        return super().construct_mapping(node, deep)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ConfigError(f"the key {key!r} is given twice in one object")
        mapping[key] = value
    return mapping
