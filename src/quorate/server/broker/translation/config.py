"""The broker's configuration: durations are microseconds in messages and text (``300s``) in the object."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

import msgspec

from quorate.api.codec import convert, to_builtins
from quorate.api.duration import Duration
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.struct import Struct, replace
from quorate.maintenance.moments import SECOND
from quorate.server.broker.json_trees import Malformed, Tree

S = TypeVar("S", bound=Struct)

_DEFAULTS: Final = BrokerConfigSpec()


def config_of(tree: Tree) -> BrokerConfigSpec:
    """TCmsConfig; what is not given has its default."""
    try:
        return convert(BrokerConfigSpec, to_builtins(_filled(_DEFAULTS, tree)))
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        field = ".".join(name[:1].upper() + name[1:] for name in path.rstrip("`").split("."))
        raise Malformed(problem, f"Config.{field}") from None


def config_tree(config: BrokerConfigSpec) -> Tree:
    """All of it, defaults included: whoever reads it need not know them."""
    return _shown(config)


def _filled(defaults: S, tree: Tree) -> S:
    given: dict[str, Any] = {}
    for name, default in _fields(defaults):
        value = tree.get(_message_name(name))
        if value is not None:
            given[name] = _value(default, value)
    return replace(defaults, **given)


def _value(default: Any, value: Any) -> Any:
    if isinstance(default, Duration):
        return _duration(value)
    if isinstance(value, list | tuple):
        return tuple({_field_name(name): given for name, given in each.items()} for each in value)
    return _filled(default, value) if isinstance(default, Struct) else value


def _shown(config: Struct) -> Tree:
    tree: Tree = {}
    for name, value in _fields(config):
        if isinstance(value, Duration):
            tree[_message_name(name)] = value.microseconds
        elif isinstance(value, tuple):
            tree[_message_name(name)] = [_shown(each) for each in value]
        else:
            tree[_message_name(name)] = _shown(value) if isinstance(value, Struct) else value
    return tree


def _fields(struct: Struct) -> list[tuple[str, Any]]:
    described = msgspec.structs.fields(cast("type[msgspec.Struct]", type(struct)))
    return [(field.name, getattr(struct, field.name)) for field in described]


def _message_name(name: str) -> str:
    """Such as DefaultRetryTime for default_retry_time."""
    return "TTL" if name == "ttl" else "".join(part.capitalize() for part in name.split("_"))


def _field_name(name: str) -> str:
    """Such as user for User, in an object of the configuration's lists."""
    return name[:1].lower() + name[1:]


def _duration(microseconds: int) -> Duration:
    seconds, rest = divmod(microseconds, SECOND)
    return Duration(f"{microseconds}us" if rest else f"{seconds}s")
