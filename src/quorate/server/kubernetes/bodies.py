"""Request bodies: JSON or YAML to a dict tree, and the keys that were given twice.

Of a key given twice every parser keeps the last value, so somebody's setting is lost; Kubernetes warns or
refuses (``fieldValidation``), and so do we.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

if yaml.__with_libyaml__:
    from yaml.cyaml import CParser as _Parser  # type: ignore[attr-defined]
else:
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Parser(Reader, Scanner, Parser):  # type: ignore[no-redef]
        """Slower, for an installation that has no libyaml."""

        def __init__(self, stream: bytes) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A body and the paths of keys that appeared more than once, such as ``spec.owner``."""

    value: Any
    duplicates: tuple[str, ...] = ()


#: Dicts that had repeated keys, with those keys. The dict is kept, or its id could come again for another one.
_Repeated = dict[int, tuple[dict[str, Any], list[str]]]


def parse_json(data: bytes) -> Parsed:
    """Raises ValueError with what is wrong and where."""
    repeated: _Repeated = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            _note_repeated(found, [key for key, _ in pairs], repeated)
        return found

    try:
        value = json.loads(data, object_pairs_hook=collect, parse_constant=_refuse_constant, parse_float=_finite)
        if b"\\ud" in data.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not text") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return Parsed(value, _paths(value, repeated))


def parse_yaml(data: bytes) -> Parsed:
    """YAML that could be JSON: dates stay text, keys become text, no aliases. Raises ValueError."""
    try:
        loader = _JsonLikeLoader(data)
        value = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return Parsed(value, _paths(value, loader.repeated))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _note_repeated(found: dict[str, Any], keys: list[str], repeated: _Repeated) -> None:
    repeated[id(found)] = (found, [key for key in found if keys.count(key) > 1])


def _paths(value: Any, repeated: _Repeated, prefix: str = "") -> tuple[str, ...]:
    """Where the dicts that had repeated keys ended up; walked only when there are any."""
    if not repeated:
        return ()
    found: list[str] = []
    if isinstance(value, dict):
        if id(value) in repeated:
            found += [prefix + key for key in repeated[id(value)][1]]
        for key, inner in value.items():
            found += _paths(inner, repeated, f"{prefix}{key}.")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _paths(inner, repeated, f"{prefix.removesuffix('.')}[{index}].")
    return tuple(found)


class _JsonLikeLoader(Composer, _Parser, SafeConstructor, Resolver):
    """YAML without what JSON lacks: binary, sets, dates, infinities; and without aliases, which can explode.

    Read by libyaml, four times faster; but put together by the composer in Python, which lets us refuse the aliases.
    """

    def __init__(self, stream: bytes) -> None:
        _Parser.__init__(self, stream)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self.repeated: _Repeated = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()
            raise yaml.composer.ComposerError(None, None, "aliases are not accepted here", event.start_mark)
        return super().compose_node(parent, index)

    def mapping(self, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
        found: dict[str, Any] = {}
        yield found
        keys = []
        for key_node, value_node in node.value:
            key = self._key(key_node)
            keys.append(key)
            found[key] = self.construct_object(value_node, deep=True)
        if len(found) < len(keys):
            _note_repeated(found, keys, self.repeated)

    def number(self, node: yaml.ScalarNode) -> float:
        value = self.construct_yaml_float(node)
        if not math.isfinite(value):
            raise yaml.constructor.ConstructorError(None, None, f"{value} is not JSON", node.start_mark)
        return value

    def _key(self, node: yaml.Node) -> str:
        key = self.construct_object(node, deep=True)
        if isinstance(key, str):
            return key
        if isinstance(key, bool | int | float) or key is None:
            return json.dumps(key)
        raise yaml.constructor.ConstructorError(None, None, "a key must be text", node.start_mark)


_TAG = "tag:yaml.org,2002:"
_JsonLikeLoader.yaml_constructors = {
    f"{_TAG}map": _JsonLikeLoader.mapping,
    f"{_TAG}float": _JsonLikeLoader.number,
    **{
        tag: yaml.SafeLoader.yaml_constructors[tag]
        for tag in (f"{_TAG}str", f"{_TAG}int", f"{_TAG}bool", f"{_TAG}null", f"{_TAG}seq", None)
    },
}
# A date in a manifest is the text that was written.
_JsonLikeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (f"{_TAG}timestamp", f"{_TAG}merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
