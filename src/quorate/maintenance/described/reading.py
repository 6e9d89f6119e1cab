"""A parsed document, read strictly: every fault names its place, the value found there, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any, Final, NoReturn, TypeVar, get_args, get_origin

import msgspec

from quorate.api import codec
from quorate.errors import ConfigError

E = TypeVar("E", bound=Enum)
S = TypeVar("S")

_SHOWN: Final = 60
_PLACE: Final = re.compile(r" - at `\$(.*)`$")
#: One step of such a place: a field, or a number in a list.
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class Entry:
    """A value and where it stands."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    def fail(self, allowed: str) -> NoReturn:
        """It is not what it should be."""
        raise ConfigError(f"{self.path or 'the document'}: {_shown(self.value)} is not {allowed}")

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Entry]:
        """A mapping with these keys and no others. A value of null counts as absent."""
        if not isinstance(self.value, Mapping):
            self.fail("a mapping")
        known = [*required, *optional]
        for key in self.value:
            if key not in known:
                self._at(key).fail(f"expected: allowed here are {', '.join(known)}")
        missing = next((key for key in required if self.value.get(key) is None), None)
        if missing is not None:
            raise ConfigError(f"{self._at(missing).path}: is missing")
        return {key: self._at(key) for key in known if self.value.get(key) is not None}

    def items(self) -> list[Entry]:
        """A list."""
        if not isinstance(self.value, list):
            self.fail("a list")
        return [Entry(value, f"{self.path}[{number}]") for number, value in enumerate(self.value)]

    def integer(self, low: int, high: int) -> int:
        """A whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            self.fail(f"a whole number from {low} to {high}")
        return self.value

    def text(self, longest: int) -> str:
        """Some text."""
        if not isinstance(self.value, str) or not 1 <= len(self.value) <= longest or not self.value.isprintable():
            self.fail(f"a line of text of 1 to {longest} characters")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value

    def choice(self, kind: type[E]) -> E:
        """One of a few words."""
        return self.one_of({str(member.value): member for member in kind})

    def one_of(self, words: Mapping[str, E]) -> E:
        """One of these words."""
        if not isinstance(self.value, str) or self.value not in words:
            self.fail(f"one of {', '.join(words)}")
        return words[self.value]

    def struct(self, kind: type[S]) -> S:
        """A wire type, without fields that it does not have."""
        self._check_names(kind)
        try:
            return codec.convert(kind, self.value)
        except (msgspec.ValidationError, ValueError) as error:
            self._translate(str(error))

    def _check_names(self, kind: object) -> None:
        kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if get_origin(kind) is tuple and isinstance(self.value, list):
            for number, value in enumerate(self.value):
                Entry(value, f"{self.path}[{number}]")._check_names(get_args(kind)[0])
            return
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            return
        known = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        for key, entry in self.fields((), known).items():
            entry._check_names(known[key])

    def _translate(self, message: str) -> NoReturn:
        """What msgspec says, with the value that it was about."""
        found = _PLACE.search(message)
        place = found.group(1) if found is not None else ""
        value = self.value
        for name, number in _STEP.findall(place):
            value = value[name] if name else value[int(number)]
        said = _PLACE.sub("", message).replace("`", "")
        raise ConfigError(f"{self.path}{place}: {_shown(value)} is refused: {said}")

    def _at(self, key: object) -> Entry:
        path = f"{self.path}.{key}" if self.path else str(key)
        return Entry(self.value.get(key), path)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
