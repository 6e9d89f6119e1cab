"""Arbitrary objects of any kind, built from the kind's own declaration."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec import inspect as types

from quorate.api.duration import Duration
from quorate.api.meta import Resource
from quorate.api.quantity import Quantity
from quorate.api.secret import Secret

_CUSTOM: dict[type, st.SearchStrategy[Any]] = {
    Quantity: st.sampled_from(["0", "10Gi", "1.5Gi", "1e3", "500m", "12345"]).map(Quantity),
    Duration: st.sampled_from(["10m", "0s", "1h30m"]).map(Duration),
    Secret: st.text("abc", min_size=1, max_size=8).map(Secret),
}
_TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
_WORDS = st.text("aé-1", max_size=4)
#: Metadata is Kubernetes' own business.
_SKIPPED = {"metadata"}


def objects(cls: type[Resource]) -> st.SearchStrategy[Any]:
    """Objects of one kind."""
    return _values(types.type_info(cls))


def _values(info: types.Type) -> st.SearchStrategy[Any]:
    match info:
        case types.Metadata():
            return _values(info.type)
        case types.UnionType():
            return st.one_of([_values(member) for member in info.types])
        case types.NoneType():
            return st.none()
        case types.StructType():
            return _structs(info)
        case types.CustomType():
            return _CUSTOM[info.cls]
        case types.StrType():
            return _texts(info)
        case types.BytesType():
            return st.binary(max_size=4)
        case types.BoolType():
            return st.booleans()
        case types.IntType():
            least = info.ge if info.ge is not None else -(2**63) if info.gt is None else info.gt + 1
            return st.integers(least, 2**63 - 1 if info.le is None else info.le)
        case types.DateTimeType():
            return _TIMES
        case types.EnumType():
            return st.sampled_from(list(info.cls))
        case types.VarTupleType():
            least = info.min_length or 0
            return st.lists(_values(info.item_type), min_size=least, max_size=least + 2).map(tuple)
        case types.DictType():
            return st.dictionaries(_values(info.key_type), _values(info.value_type), max_size=2)
        case types.AnyType():
            return st.recursive(
                st.none() | st.booleans() | st.integers(0, 9) | _WORDS,
                lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=2),
                max_leaves=3,
            )
    raise TypeError(f"no strategy for {info!r}")


def _structs(info: types.StructType) -> st.SearchStrategy[Any]:
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in info.fields:
        if field.name not in _SKIPPED:
            has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
            (optional if has_default else required)[field.name] = _values(field.type)
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: info.cls(**fields))


def _texts(info: types.StrType) -> st.SearchStrategy[str]:
    least, most = info.min_length or 0, info.max_length or 12
    if info.pattern is None:
        return st.text("aé-1", min_size=least, max_size=min(most, least + 4))
    # `$` would also let a newline follow.
    pattern = st.from_regex(info.pattern.replace("$", r"\Z"))
    return pattern.filter(lambda text: least <= len(text) <= most)
