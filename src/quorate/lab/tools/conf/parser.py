"""Reads one drbd.conf text into a ``model.Document``, with drbdadm's own errors.

A wrong value is noted and reading goes on; a wrong word ends it. A text is read once: equal texts give the same
document, however many commands read the file.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from quorate.lab.tools.conf import options
from quorate.lab.tools.conf.lexer import Token, tokens
from quorate.lab.tools.conf.model import (
    Address,
    Connection,
    Document,
    End,
    HostSection,
    Include,
    Resource,
    Settings,
    Volume,
)
from quorate.lab.tools.conf.reader import Problem, Reader, Stop, shortened, unexpected, unscanned

_RESOURCE_WORDS = (
    "protocol | on | disk | net | syncer | startup | handlers | connection | ignore-on | stacked-on-top-of | skip"
)
_FILE_WORDS = "global | common | resource | skip | include |\n\trequire-drbd-module-version-{eq,ne,gt,ge,lt,le}"
_HOST_WORDS = "disk | device | address | meta-disk | flexible-meta-disk | node-id | skip"
_VOLUME_WORDS = "device | disk | meta-disk | flex-meta-disk | }"
_HIGHEST_NODE_ID = 32
_HIGHEST_PORT = 65535


class Refused(Exception):
    """A text with problems."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems


@functools.lru_cache(maxsize=4096)
def _outcome(text: str) -> Document | tuple[Problem, ...]:
    reader = _Parser(tokens(text))
    try:
        document = reader.document()
    except Stop as stop:
        return (*reader.problems, stop.problem)
    return tuple(reader.problems) or document


def parse(text: str) -> Document:
    """The document; raises Refused."""
    outcome = _outcome(text)
    if isinstance(outcome, Document):
        return outcome
    raise Refused(outcome)


@dataclass
class _Draft:
    """A resource while its section is read."""

    options: list[tuple[str, str]] = field(default_factory=list)
    net: list[tuple[str, str]] = field(default_factory=list)
    disk: list[tuple[str, str]] = field(default_factory=list)
    peer_device: list[tuple[str, str]] = field(default_factory=list)
    hosts: list[HostSection] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    volumes: list[Volume] = field(default_factory=list)

    def resource(self, name: str, line: int) -> Resource:
        return Resource(
            name,
            line,
            tuple(self.options),
            tuple(self.net),
            tuple(self.disk),
            tuple(self.peer_device),
            tuple(self.hosts),
            tuple(self.connections),
            tuple(self.volumes),
        )


class _Parser(Reader):
    # --- the file ---

    def document(self) -> Document:
        resources: list[Resource] = []
        includes: list[Include] = []
        common = _Draft()
        while (token := self._next()) is not self._stream[-1]:
            match token.text:
                case "resource":
                    resources.append(self._resource())
                case "common":
                    self._section(lambda entry: self._resource_entry(entry, common))
                case "include":
                    includes.append(Include(self._value().text))
                    self._mark(";")
                case "global" | "skip":
                    self._skip_entry(token)
                case _:
                    raise unexpected(token, _FILE_WORDS)
        return Document(tuple(resources), tuple(includes), common.resource("common", 0), self._stream[-1].line)

    def _skip_entry(self, _token: Token) -> None:
        """An entry that matters to nobody: up to its semicolon, or past its braces."""
        while True:
            token = self._peek()
            if token.is_mark(";"):
                self._next()
                return
            if token.is_mark("{"):
                self._section(self._skip_entry, ";")
                return
            if token is self._stream[-1]:
                raise unscanned(token, ";")
            self._next()

    def _resource(self) -> Resource:
        name = self._value()
        draft = _Draft()
        self._section(lambda token: self._resource_entry(token, draft))
        return draft.resource(name.text, name.line)

    def _resource_entry(self, token: Token, draft: _Draft) -> None:
        match token.text:
            case "options":
                draft.options += self._settings(options.RESOURCE, " | ".join(options.RESOURCE))
            case "net":
                draft.net += self._net()
            case "protocol":
                draft.net.append(self._setting(token, options.NET, ""))
            case "disk":
                disk, peer_device = self._disk_settings()
                draft.disk += disk
                draft.peer_device += peer_device
            case "on":
                draft.hosts += self._hosts()
            case "volume":
                draft.volumes.append(self._volume(self._integer()))
            case "connection":
                draft.connections.append(self._connection(token))
            case "connection-mesh":
                draft.connections += self._mesh(token)
            case "handlers":
                self._section(self._handler, " | ".join(options.HANDLERS))
            case "startup" | "proxy" | "syncer" | "skip":
                self._skip_entry(token)
            case _:
                raise unscanned(token, _RESOURCE_WORDS)

    def _handler(self, token: Token) -> None:
        if token.text not in options.HANDLERS:
            raise unexpected(token, " | ".join(options.HANDLERS))
        self._skip_entry(token)

    # --- options ---

    def _net(self) -> list[tuple[str, str]]:
        return self._settings(options.NET, "an option keyword")

    def _settings(self, allowed: Mapping[str, options.Option], words: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        self._section(lambda token: found.append(self._setting(token, allowed, words)), words)
        return found

    def _disk_settings(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        found = self._settings({**options.DISK, **options.PEER_DEVICE}, " | ".join(options.PEER_DEVICE))
        return (
            [setting for setting in found if setting[0] in options.DISK],
            [setting for setting in found if setting[0] in options.PEER_DEVICE],
        )

    def _setting(self, token: Token, allowed: Mapping[str, options.Option], words: str) -> tuple[str, str]:
        option = allowed.get(token.text) if token.is_value and not token.text.startswith("_") else None
        if option is None:
            raise unexpected(token, words)
        value = {options.Kind.FLAG: "yes"}.get(option.kind, "")
        if not self._peek().is_mark(";") or option.kind not in (options.Kind.FLAG, options.Kind.TEXT):
            word = self._value()
            value = word.text
            if problem := option.problem(value):
                head, _, tail = problem.partition(".\n")
                text = f"Parse error: while parsing value ('{shortened(value)}')\nfor {option.name}. Value is {head}."
                self.problems.append(Problem(word.line, text + (f"\n{tail}" if tail else "")))
        self._mark(";")
        return option.name, value

    # --- members ---

    def _hosts(self) -> list[HostSection]:
        names = [self._value()]
        while self._peek().is_value:
            names.append(self._next())
        section = [HostSection(names[0].text, names[0].line)]

        def entry(token: Token) -> None:
            host = section[0]
            match token.text:
                case "node-id":
                    number = self._integer()
                    node_id = self._in_range(number, "node-id", 0, _HIGHEST_NODE_ID)
                    section[0] = replace(host, node_id=node_id, node_id_line=number.line)
                    self._mark(";")
                case "address":
                    section[0] = replace(host, address=self._address())
                    self._mark(";")
                case "volume":
                    volume = self._volume(self._integer())
                    section[0] = replace(host, volumes=(*host.volumes, volume))
                case "device" | "disk" | "meta-disk" | "flexible-meta-disk":
                    implicit = host.volume(0) or Volume(0, token.line)
                    section[0] = replace(host, volumes=(self._volume_entry(token, implicit),))
                case "options":
                    settings = self._settings(options.RESOURCE, " | ".join(options.RESOURCE))
                    section[0] = replace(host, settings=tuple(settings))
                case _:
                    raise unexpected(token, _HOST_WORDS)

        self._section(entry, _HOST_WORDS)
        return [replace(section[0], name=name.text, line=name.line) for name in names]

    def _address(self) -> Address:
        family = "ipv4"
        word = self._value()
        if word.text in ("ipv4", "ipv6", "ssocks", "sdp"):
            family, word = word.text, self._value()
        ip, colon, port = word.text.rpartition(":")
        if not colon:
            raise unscanned(self._peek(), ":")
        if not port.isdecimal():
            raise unscanned(word.part(port), "TK_INTEGER")
        return Address(family, ip, self._in_range(word.part(port), "port", 1, _HIGHEST_PORT))

    def _volume(self, number: Token) -> Volume:
        volume = [Volume(int(number.text), number.line)]

        def entry(token: Token) -> None:
            volume[0] = self._volume_entry(token, volume[0])

        self._section(entry, _VOLUME_WORDS)
        return volume[0]

    def _volume_entry(self, token: Token, volume: Volume) -> Volume:
        match token.text:
            case "device":
                number = self._minor()
                self._mark(";")
                return replace(volume, minor=int(number.text), line=number.line)
            case "disk" if self._peek().is_mark("{"):
                disk, _peer_device = self._disk_settings()
                return replace(volume, settings=(*volume.settings, *disk))
            case "disk":
                path = self._value()
                self._mark(";")
                return replace(volume, disk=path.text)
            case "meta-disk" | "flexible-meta-disk":
                path = self._value()
                self._mark(";")
                return replace(volume, meta_disk=path.text)
            case _:
                raise unscanned(token, _VOLUME_WORDS)

    def _minor(self) -> Token:
        """``minor 1000``, ``/dev/drbd1000``, or both."""
        word = self._value()
        if word.text != "minor" and self._peek().text != "minor":
            number = word.text.removeprefix("/dev/drbd")
            if not number.isdecimal():
                raise unscanned(word, "minor")
            return word.part(number)
        if word.text != "minor":
            self._next()
        return self._integer()

    # --- connections ---

    def _connection(self, start: Token) -> Connection:
        if self._peek().is_value:
            self._next()  # a name; nothing depends on it
        ends: list[End] = []
        net: list[tuple[str, str]] = []
        peer_device: list[tuple[str, str]] = []
        words = "host | net | skip | }"

        def entry(token: Token) -> None:
            match token.text:
                case "host":
                    ends.append(self._end())
                case "path":
                    self._section(entry, words)
                case "net":
                    net.extend(self._net())
                case "disk":
                    peer_device.extend(self._settings(options.PEER_DEVICE, " | ".join(options.PEER_DEVICE)))
                case "volume":
                    self._integer()
                    self._section(volume_entry, "disk")
                case "protocol":
                    net.append(self._setting(token, options.NET, ""))
                case "skip" | "_name":
                    self._skip_entry(token)
                case _:
                    raise unscanned(token, words)

        def volume_entry(token: Token) -> None:
            if token.text != "disk":
                raise unscanned(token, "disk")
            peer_device.extend(self._settings(options.PEER_DEVICE, " | ".join(options.PEER_DEVICE)))

        self._section(entry, words)
        return Connection(start.line, tuple(ends), tuple(net), tuple(peer_device))

    def _end(self) -> End:
        name = self._value()
        address = None
        while self._peek().is_value:
            word = self._next()
            if word.text == "address":
                address = self._address()
            elif word.text == "port":
                self._integer()
            else:
                raise unscanned(word, "address | port | ;")
        self._mark(";")
        return End(name.text, address)

    def _mesh(self, start: Token) -> list[Connection]:
        names: list[str] = []
        net: Settings = ()
        peer_device: Settings = ()
        words = "hosts | net | }"

        def entry(token: Token) -> None:
            nonlocal net, peer_device
            match token.text:
                case "hosts":
                    while self._peek().is_value:
                        names.append(self._next().text)
                    self._mark(";")
                case "net":
                    net = (*net, *self._net())
                case "disk":
                    own = self._settings(options.PEER_DEVICE, " | ".join(options.PEER_DEVICE))
                    peer_device = (*peer_device, *own)
                case _:
                    raise unscanned(token, words)

        self._section(entry, words)
        return [
            Connection(start.line, (End(one, None), End(other, None)), net, peer_device)
            for one, other in itertools.combinations(names, 2)
        ]
