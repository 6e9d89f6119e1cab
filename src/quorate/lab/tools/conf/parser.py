"""Reads one drbd.conf text into a ``model.Document``, with drbdadm's own errors.

A text is read once: equal texts give the same document, however many commands read the file.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
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


class Problem(Exception):
    """A text that drbdadm refuses. ``line`` counts from one within the text."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


@functools.lru_cache(maxsize=4096)
def _outcome(text: str) -> Document | tuple[int, str]:
    try:
        return _Parser(tokens(text)).document()
    except Problem as problem:
        return problem.line, problem.text


def parse(text: str) -> Document:
    """The document; raises Problem."""
    outcome = _outcome(text)
    if isinstance(outcome, Document):
        return outcome
    raise Problem(*outcome)


def _shortened(value: str) -> str:
    return value if len(value) <= 20 else value[:20] + "..."


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


class _Parser:
    def __init__(self, stream: list[Token]) -> None:
        self._stream = stream
        self._position = 0

    # --- tokens ---

    def _next(self) -> Token:
        token = self._stream[self._position]
        self._position = min(self._position + 1, len(self._stream) - 1)
        return token

    def _peek(self) -> Token:
        return self._stream[self._position]

    def _refuse(self, token: Token, expected: str) -> Problem:
        return Problem(token.line, f"Parse error: '{expected}' expected,\n\tbut got '{_shortened(token.text)}'")

    def _mark(self, mark: str) -> None:
        token = self._next()
        if not token.is_mark(mark):
            raise self._refuse(token, mark)

    def _value(self, expected: str) -> Token:
        token = self._next()
        if not token.is_value:
            raise self._refuse(token, expected)
        return token

    def _integer(self, what: str) -> Token:
        token = self._value(what)
        if not token.text.isdecimal():
            raise self._refuse(token, what)
        return token

    def _section(self, entry: Callable[[Token], None], *, may_end_open: bool = False) -> None:
        """Entries between braces. The outermost section of a file may lack its last brace, as with the real one."""
        self._mark("{")
        while True:
            token = self._next()
            if token.is_mark("}"):
                return
            if token is self._stream[-1]:
                if may_end_open:
                    return
                raise self._refuse(token, "}")
            entry(token)

    # --- the file ---

    def document(self) -> Document:
        resources: list[Resource] = []
        includes: list[Include] = []
        common: Resource | None = None
        while (token := self._next()) is not self._stream[-1]:
            match token.text:
                case "resource":
                    resources.append(self._resource())
                case "common":
                    draft = _Draft()
                    self._section(lambda entry, draft=draft: self._resource_entry(entry, draft))  # type: ignore[misc]
                    common = draft.resource("common", token.line)
                case "include":
                    includes.append(Include(self._value("path").text))
                    self._mark(";")
                case "global":
                    self._section(self._skip_entry)
                case "skip":
                    self._skip_entry(token)
                case _:
                    raise self._refuse(token, "global | common | resource | skip | include")
        return Document(tuple(resources), tuple(includes), common, self._stream[-1].line)

    def _skip_entry(self, _token: Token) -> None:
        """An entry that matters to nobody: up to its semicolon, or past its braces."""
        while True:
            token = self._peek()
            if token.is_mark(";"):
                self._next()
                return
            if token.is_mark("{"):
                self._section(self._skip_entry)
                return
            if token is self._stream[-1]:
                raise self._refuse(token, ";")
            self._next()

    def _resource(self) -> Resource:
        name = self._value("resource name")
        draft = _Draft()
        self._section(lambda token: self._resource_entry(token, draft), may_end_open=True)
        return draft.resource(name.text, name.line)

    def _resource_entry(self, token: Token, draft: _Draft) -> None:
        match token.text:
            case "options":
                draft.options += self._settings(options.RESOURCE)
            case "net":
                draft.net += self._settings(options.NET)
            case "disk":
                disk, peer_device = self._disk_settings()
                draft.disk += disk
                draft.peer_device += peer_device
            case "on":
                draft.hosts += self._hosts()
            case "volume":
                draft.volumes.append(self._volume(self._integer("volume number")))
            case "connection":
                draft.connections.append(self._connection(token))
            case "connection-mesh":
                draft.connections += self._mesh(token)
            case "startup" | "handlers" | "proxy" | "syncer":
                self._section(self._skip_entry)
            case _:
                raise self._refuse(token, "protocol | on | disk | net | syncer | startup | handlers")

    # --- options ---

    def _settings(self, allowed: Mapping[str, options.Option]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        self._section(lambda token: found.append(self._setting(token, allowed)))
        return found

    def _disk_settings(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        both = {**options.DISK, **options.PEER_DEVICE}
        found = self._settings(both)
        return (
            [setting for setting in found if setting[0] in options.DISK],
            [setting for setting in found if setting[0] in options.PEER_DEVICE],
        )

    def _setting(self, token: Token, allowed: Mapping[str, options.Option]) -> tuple[str, str]:
        option = allowed.get(token.text) if token.is_value and not token.text.startswith("_") else None
        if option is None:
            names = " | ".join(name for name in allowed if not name.startswith("_"))
            raise self._refuse(token, names)
        if option.kind is options.Kind.FLAG and self._peek().is_mark(";"):
            value = "yes"
        else:
            word = self._value("option value")
            value = word.text
            if problem := option.problem(value):
                head, _, tail = problem.partition(".\n")
                text = f"Parse error: while parsing value ('{_shortened(value)}')\nfor {option.name}. Value is {head}."
                raise Problem(word.line, text + (f"\n{tail}" if tail else ""))
        self._mark(";")
        return option.name, value

    # --- members ---

    def _hosts(self) -> list[HostSection]:
        names = [self._value("host name")]
        while self._peek().is_value:
            names.append(self._next())
        section = [HostSection(names[0].text, names[0].line)]

        def entry(token: Token) -> None:
            host = section[0]
            match token.text:
                case "node-id":
                    number = self._integer("node-id")
                    section[0] = replace(host, node_id=int(number.text), node_id_line=number.line)
                    self._mark(";")
                case "address":
                    section[0] = replace(host, address=self._address())
                    self._mark(";")
                case "volume":
                    volume = self._volume(self._integer("volume number"))
                    section[0] = replace(host, volumes=(*host.volumes, volume))
                case "device" | "disk" | "meta-disk":
                    implicit = host.volume(0) or Volume(0, token.line)
                    section[0] = replace(host, volumes=(self._volume_entry(token, implicit),))
                case "options":
                    section[0] = replace(host, settings=tuple(self._settings(options.RESOURCE)))
                case _:
                    raise self._refuse(token, "disk | device | address | meta-disk | flexible-meta-disk")

        self._section(entry)
        return [replace(section[0], name=name.text) for name in names]

    def _address(self) -> Address:
        family = "ipv4"
        word = self._value("address")
        if word.text in ("ipv4", "ipv6", "ssocks", "sdp"):
            family, word = word.text, self._value("address")
        ip, colon, port = word.text.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
            raise self._refuse(word, "IP:port")
        return Address(family, ip, int(port))

    def _volume(self, number: Token) -> Volume:
        volume = [Volume(int(number.text), number.line)]

        def entry(token: Token) -> None:
            volume[0] = self._volume_entry(token, volume[0])

        self._section(entry)
        return volume[0]

    def _volume_entry(self, token: Token, volume: Volume) -> Volume:
        match token.text:
            case "device":
                word = self._value("device | minor")
                if word.text == "minor":
                    number = self._integer("minor")
                elif word.text.startswith("/dev/drbd") and word.text[9:].isdecimal():
                    number = replace(word, text=word.text[9:])
                elif self._peek().text == "minor":
                    self._next()
                    number = self._integer("minor")
                else:
                    raise self._refuse(word, "minor | /dev/drbd")
                self._mark(";")
                return replace(volume, minor=int(number.text), line=number.line)
            case "disk" if self._peek().is_mark("{"):
                disk, _peer_device = self._disk_settings()
                return replace(volume, settings=(*volume.settings, *disk))
            case "disk":
                path = self._value("disk")
                self._mark(";")
                return replace(volume, disk=path.text)
            case "meta-disk" | "flexible-meta-disk":
                path = self._value("meta-disk")
                self._mark(";")
                return replace(volume, meta_disk=path.text)
            case _:
                raise self._refuse(token, "device | disk | meta-disk | flexible-meta-disk")

    # --- connections ---

    def _connection(self, start: Token) -> Connection:
        if self._peek().is_value:
            self._next()  # a name; nothing depends on it
        ends: list[End] = []
        net: list[tuple[str, str]] = []
        peer_device: list[tuple[str, str]] = []

        def entry(token: Token) -> None:
            match token.text:
                case "host":
                    ends.append(self._end())
                case "path":
                    self._section(entry)
                case "net":
                    net.extend(self._settings(options.NET))
                case "disk":
                    peer_device.extend(self._settings(options.PEER_DEVICE))
                case "volume":
                    self._integer("volume number")
                    self._section(volume_entry)
                case "protocol" | "skip" | "_name":
                    self._skip_entry(token)
                case _:
                    raise self._refuse(token, "host | net | skip | }")

        def volume_entry(token: Token) -> None:
            if token.text != "disk":
                raise self._refuse(token, "disk")
            peer_device.extend(self._settings(options.PEER_DEVICE))

        self._section(entry)
        if len(ends) != 2:
            raise Problem(start.line, "connection must have exactly two host statements")
        return Connection(start.line, tuple(ends), tuple(net), tuple(peer_device))

    def _end(self) -> End:
        name = self._value("host name")
        address = None
        while self._peek().is_value:
            word = self._next()
            if word.text == "address":
                address = self._address()
            elif word.text == "port":
                self._integer("port")
            else:
                raise self._refuse(word, "address | port | ;")
        self._mark(";")
        return End(name.text, address)

    def _mesh(self, start: Token) -> list[Connection]:
        names: list[str] = []
        net: Settings = ()
        peer_device: Settings = ()

        def entry(token: Token) -> None:
            nonlocal net, peer_device
            match token.text:
                case "hosts":
                    while self._peek().is_value:
                        names.append(self._next().text)
                    self._mark(";")
                case "net":
                    net = (*net, *self._settings(options.NET))
                case "disk":
                    peer_device = (*peer_device, *self._settings(options.PEER_DEVICE))
                case _:
                    raise self._refuse(token, "hosts | net")

        self._section(entry)
        return [
            Connection(start.line, (End(one, None), End(other, None)), net, peer_device)
            for one, other in itertools.combinations(names, 2)
        ]
