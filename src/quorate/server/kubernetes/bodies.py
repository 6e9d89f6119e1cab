"""Request bodies: JSON or YAML to a dict tree, and the keys that were given twice.

Of a key given twice every parser keeps the last value, so somebody's setting is lost; Kubernetes warns or
refuses (``fieldValidation``), and so do we.

Whatever comes later walks the tree on the event loop, and many a message names the place that it is about. So what no
object of ours comes near is refused here: too many values, too deep, keys as long as texts.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
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


#: The most values in a body, counting those inside others; how deep they may lie in each other; the longest key.
MAX_VALUES = 30_000
MAX_DEPTH = 100
MAX_KEY = 1024
#: Bytes of YAML, which is read a hundred times slower than JSON. kubectl sends none.
MAX_YAML = 256 * 1024
#: Paths of repeated keys that are told of: as many as a real API server reports.
MAX_REPEATED = 100
#: JSON of fewer bytes is within these bounds, or near enough, but for how deep it lies: that is counted always.
_SMALL = 16 * 1024
#: The longest number that is one: a float of 64 bits has at most 17 digits that matter.
_LONGEST_NUMBER = 400


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
        value = json.loads(
            data,
            object_pairs_hook=collect,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole if len(data) > _SMALL else None,
        )
        if b"\\ud" in data.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not text") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if len(data) > _SMALL or data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        check_bounds(value)
    return Parsed(value, _paths(value, repeated))


def parse_yaml(data: bytes) -> Parsed:
    """YAML that could be JSON: dates stay text, keys become text, no aliases. Raises ValueError."""
    if len(data) > MAX_YAML:
        raise ValueError(f"YAML of {len(data)} bytes; at most {MAX_YAML} are read: send it as JSON")
    try:
        loader = _JsonLikeLoader(data)
        value = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    check_bounds(value)
    return Parsed(value, _paths(value, loader.repeated))


def check_bounds(value: Any) -> None:
    """Raise ValueError for what nobody should have to walk."""
    count, depth = 0, 0
    level = [value]
    while level:
        count += len(level)
        depth += 1
        if count > MAX_VALUES:
            raise ValueError(f"it has more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        inside: list[Any] = []
        for one in level:
            if type(one) is dict:
                for key in one:
                    if len(key) > MAX_KEY:
                        raise ValueError(f"the key {key[:40]!r}… has {len(key)} characters; at most {MAX_KEY} may be")
                inside += one.values()
            elif type(one) is list:
                inside += one
        level = inside


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _note_repeated(found: dict[str, Any], keys: list[str], repeated: _Repeated) -> None:
    repeated[id(found)] = (found, [key for key, times in Counter(keys).items() if times > 1])


def _paths(value: Any, repeated: _Repeated) -> tuple[str, ...]:
    """Where the dicts that had repeated keys ended up, those on top first; walked only when there are any."""
    found: list[str] = []
    left = [("", value)] if repeated else []
    while left and len(found) < MAX_REPEATED:
        prefix, one = left.pop()
        if isinstance(one, dict):
            if id(one) in repeated:
                found += [prefix + key for key in repeated[id(one)][1][: MAX_REPEATED - len(found)]]
            inside = [(f"{prefix}{key}.", part) for key, part in one.items() if isinstance(part, dict | list)]
        else:
            at = prefix.removesuffix(".")
            inside = [(f"{at}[{i}].", part) for i, part in enumerate(one) if isinstance(part, dict | list)]
        left += reversed(inside)
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

    def integer(self, node: yaml.ScalarNode) -> int:
        if len(str(node.value)) > _LONGEST_NUMBER:
            raise yaml.constructor.ConstructorError(None, None, "a number of too many digits", node.start_mark)
        value: int = self.construct_yaml_int(node)
        return value

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
    f"{_TAG}int": _JsonLikeLoader.integer,
    **{
        tag: yaml.SafeLoader.yaml_constructors[tag]
        for tag in (f"{_TAG}str", f"{_TAG}bool", f"{_TAG}null", f"{_TAG}seq", None)
    },
}
#: As YAML 1.1 has numbers, but for those in base 60: to Kubernetes ``1:30`` is text, and read as a number a long one
#: takes hours.
_NUMBERS = {
    f"{_TAG}int": re.compile(r"[-+]?(?:0b[0-1_]+|0[0-7_]+|(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F_]+)\Z"),
    f"{_TAG}float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
# A date in a manifest is the text that was written.
_JsonLikeLoader.yaml_implicit_resolvers = {
    first: [
        (tag, _NUMBERS.get(tag, pattern))
        for tag, pattern in resolvers
        if tag not in (f"{_TAG}timestamp", f"{_TAG}merge")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
