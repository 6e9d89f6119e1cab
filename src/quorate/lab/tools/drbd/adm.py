"""``drbdadm``: reads the configuration and calls the other two.

A backend command that ends with ten or more is named, whole, in the error: with the shared secret if that is among its
options. That is how the real one is. A drbdsetup that has not ended after five seconds is killed and named too, and
nothing more is done: the resource stays half made (``up-5s-timeout-negotiating.txt``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.lab.tools.conf.configuration import MAIN_FILE, ConfigInvalid, Configuration, Part
from quorate.lab.tools.conf.model import Volume
from quorate.lab.tools.drbd import adjust, adm_line, dump_config
from quorate.lab.tools.drbd.adm_line import CommandLine
from quorate.lab.tools.drbd.meta import drbdmeta
from quorate.lab.tools.drbd.setup import drbdsetup
from quorate.lab.tools.process import Process, Program

_NAMED_FROM = 10
_FAILED, _INVALID, _CANNOT_OPEN, _GAVE_UP = 1, 10, 20, 20
#: Seconds that a drbdsetup has.
_PATIENCE = 5.0
_WHOLE = frozenset(
    ["up", "down", "primary", "secondary", "role", "cstate", "connect", "disconnect", "forget-peer", "status"],
)
_SEVERAL = frozenset({"net-options"})  # one that fails does not keep the next from being tried


class _GivenUp(Exception):
    """A backend command took too long."""


def drbdadm(process: Process, argv: list[str]) -> Program | int:
    """The command line."""
    try:
        line = adm_line.read(argv[1:])
    except adm_line.UnknownOption as error:
        process.err(str(error))
        return _FAILED
    if not line.command:
        process.err("USAGE: drbdadm [OPTION...] COMMAND {all|RESOURCE...}\n")
        return _FAILED
    try:
        configuration = Configuration.of(
            process.host.files,
            main=line.files.get("main", MAIN_FILE),
            test=line.files.get("test"),
            exclude=line.files.get("exclude"),
        )
    except ConfigInvalid as error:
        process.err(f"{error}\n")
        return _INVALID
    except FileNotFoundError as error:
        process.err(f"Can not open '{error}'.\n.")
        return _CANNOT_OPEN
    if line.command == "sh-nop":
        return 0
    if line.command == "dump":
        return _dump(process, configuration, line)
    if line.command not in _COMMANDS:
        process.err(f"drbdadm: Unknown command '{line.command}'\n")
        return _FAILED
    if not configuration.resources:
        process.err("no resources defined!\n")
        return _FAILED
    try:
        code = _on_each(process, configuration, line)
    except _GivenUp:
        code = _GAVE_UP
    return code if not line.late else _late(process, line.late, code)


def _late(process: Process, seconds: float, code: int) -> Program:
    yield process.host.after(seconds)
    return code


def _on_each(process: Process, configuration: Configuration, line: CommandLine) -> int:
    objects = line.objects
    if not objects and line.command == "status":
        return _Backend(process, line).call("drbdsetup", "status")
    if not objects:
        process.err(f"drbdadm: {line.command} needs a resource\n")
        return _FAILED
    if objects == ["all"]:
        objects = [name for name in configuration.resources if configuration.part(name, process.host.name)]
    worst = 0
    for text in objects:
        chosen = _choose(process, configuration, line.command, text)
        if isinstance(chosen, int):
            return max(worst, chosen)
        worst = max(worst, _COMMANDS[line.command](_Adm(process, chosen, line)))
    return worst


@dataclass(frozen=True)
class _Choice:
    """A resource, and of it one volume or one peer if only that is meant."""

    part: Part
    volume: int | None
    peer: str | None

    def volumes(self) -> list[Volume]:
        return [volume for volume in self.part.volumes if self.volume in (None, volume.number)]

    def peers(self) -> list[int]:
        return [peer.node_id for peer in self.part.peers if self.peer in (None, peer.name)]


def _choose(process: Process, configuration: Configuration, command: str, text: str) -> _Choice | int:
    name_and_peer, _, volume = text.partition("/")
    name, _, peer = name_and_peer.partition(":")
    part = configuration.part(name, process.host.name) or _with_minor(process, configuration, name)
    if part is None:
        process.err(f"'{name}' not defined in your config (for this host).\n")
        return _FAILED
    if volume and (not volume.isdecimal() or int(volume) not in {entry.number for entry in part.volumes}):
        process.err(f"Resource '{name}' has no volume {volume}\n")
        return _FAILED
    if volume and command in _WHOLE:
        process.err(f"{command} operates on whole resources, but you specified a specific volume!\n")
        return _FAILED
    if peer and peer not in {entry.name for entry in part.peers}:
        process.err(f"Not a valid connection ({name}:{peer}) for this host\n")
        return _FAILED
    return _Choice(part, int(volume) if volume else None, peer or None)


def _with_minor(process: Process, configuration: Configuration, name: str) -> Part | None:
    """What ``minor-7`` means where no resource is called so."""
    number = name.removeprefix("minor-")
    if number == name or not number.isdecimal():
        return None
    parts = (configuration.part(each, process.host.name) for each in configuration.resources)
    return next((part for part in parts if part and any(v.minor == int(number) for v in part.volumes)), None)


class _Backend:
    """Runs the other two, or says what it would run."""

    def __init__(self, process: Process, line: CommandLine) -> None:
        self.process = process
        self.line = line

    def call(self, *words: str) -> int:
        """Run a backend command; name it when it fails badly."""
        if self.line.verbose or self.line.dry_run:
            self.process.out(f"{' '.join(words)}\n")
        if self.line.dry_run:
            return 0
        self._wait(words)
        outcome: Program | int
        outcome = (drbdmeta if words[0] == "drbdmeta" else drbdsetup)(self.process, list(words))
        assert isinstance(outcome, int), "drbdadm calls nothing that waits"
        if outcome >= _NAMED_FROM:
            self.process.err(f"Command '{' '.join(words)}' terminated with exit code {outcome}\n")
        return outcome

    def _wait(self, words: tuple[str, ...]) -> None:
        """Have a command take its time. One that is given up was killed before it did anything. Raises _GivenUp."""
        late = self.process.host.lateness(words)
        if words[0] == "drbdsetup" and late > _PATIENCE:
            self.line.late += _PATIENCE
            self.process.err(f"Command '{' '.join(words)}' did not terminate within {_PATIENCE:g} seconds\n")
            raise _GivenUp
        self.line.late += late


class _Adm(_Backend):
    """One command for one resource."""

    def __init__(self, process: Process, choice: _Choice, line: CommandLine) -> None:
        super().__init__(process, line)
        self.choice = choice
        self.part = choice.part
        self.passed_on = line.passed_on

    def disk_settings(self, volume: Volume) -> list[str]:
        return adjust.words((*self.part.disk, *volume.settings))

    def until_failure(self, commands: Iterator[tuple[str, ...]]) -> int:
        return next((code for words in commands if (code := self.call(*words))), 0)


# --- commands ---


def _adjust(adm: _Adm) -> int:
    for stage in adjust.plan(adm.part, adm.process.host.kernel, adm.passed_on):
        failed: str | None = None
        for words in stage:
            if failed is not None and words[1] not in _SEVERAL:
                if words[1] == failed:
                    adm.process.err(f"drbdadm: {words[1]} {adm.part.name}: skipped due to earlier error\n")
            elif adm.call(*words):
                failed = words[1]
        if failed is not None:
            return _FAILED
    return 0


def _setup(command: str) -> Callable[[_Adm], int]:
    """A command on the whole resource."""
    return lambda adm: adm.call("drbdsetup", command, adm.part.name, *adm.passed_on)


def _setup_minor(command: str) -> Callable[[_Adm], int]:
    """A command on each device."""
    return lambda adm: adm.until_failure(
        ("drbdsetup", command, str(volume.minor), *adm.passed_on) for volume in adm.choice.volumes()
    )


def _setup_peer(command: str) -> Callable[[_Adm], int]:
    """A command on each connection."""
    return lambda adm: adm.until_failure(
        ("drbdsetup", command, adm.part.name, str(peer), *adm.passed_on) for peer in adm.choice.peers()
    )


def _setup_peer_device(command: str) -> Callable[[_Adm], int]:
    """A command on each device of each connection."""
    return lambda adm: adm.until_failure(
        ("drbdsetup", command, adm.part.name, str(peer), str(volume.number), *adm.passed_on)
        for peer in adm.choice.peers()
        for volume in adm.choice.volumes()
    )


def _meta(command: str) -> Callable[[_Adm], int]:
    """A drbdmeta command on each device that has a disk."""

    def run(adm: _Adm) -> int:
        max_peers = [word.partition("=")[2] for word in adm.passed_on if word.startswith("--max-peers=")]
        flags = [word for word in adm.passed_on if not word.startswith("--max-peers=")]
        rest = (max_peers or [str(max(1, len(adm.part.peers)))]) if command == "create-md" else []
        worst = 0
        for volume in adm.choice.volumes():
            if volume.disk and not volume.diskless:
                worst = max(
                    worst,
                    adm.call("drbdmeta", str(volume.minor), "v09", volume.disk, "internal", command, *rest, *flags),
                )
        return worst

    return run


def _attach(adm: _Adm) -> int:
    return adm.until_failure(
        words
        for volume in adm.choice.volumes()
        if volume.disk and not volume.diskless
        for words in (
            ("drbdmeta", str(volume.minor), "v09", volume.disk, "internal", "apply-al"),
            (
                "drbdsetup",
                "attach",
                str(volume.minor),
                volume.disk,
                volume.disk,
                "internal",
                *adm.disk_settings(volume),
            ),
        )
    )


def _resize(adm: _Adm) -> int:
    return adm.until_failure(
        words
        for volume in adm.choice.volumes()
        for words in (
            ("drbdsetup", "resize", str(volume.minor), *adm.passed_on),
            ("drbdsetup", "check-resize", str(volume.minor)),
        )
    )


_COMMANDS: dict[str, Callable[[_Adm], int]] = {
    "up": _adjust,
    "adjust": _adjust,
    "down": _setup("down"),
    "primary": _setup("primary"),
    "secondary": _setup("secondary"),
    "status": _setup("status"),
    "role": _setup("role"),
    "cstate": _setup_peer("cstate"),
    "dstate": _setup_minor("dstate"),
    "connect": _setup_peer("connect"),
    "disconnect": _setup_peer("disconnect"),
    "forget-peer": _setup_peer("forget-peer"),
    "attach": _attach,
    "detach": _setup_minor("detach"),
    "resize": _resize,
    "invalidate": _setup_minor("invalidate"),
    "outdate": _setup_minor("outdate"),
    "new-current-uuid": _setup_minor("new-current-uuid"),
    "suspend-io": _setup_minor("suspend-io"),
    "resume-io": _setup_minor("resume-io"),
    "verify": _setup_peer_device("verify"),
    "invalidate-remote": _setup_peer_device("invalidate-remote"),
    "pause-sync": _setup_peer_device("pause-sync"),
    "resume-sync": _setup_peer_device("resume-sync"),
    "create-md": _meta("create-md"),
    "dump-md": _meta("dump-md"),
    "apply-al": _meta("apply-al"),
    "wipe-md": _meta("wipe-md"),
    "check-resize": _meta("check-resize"),
}


def _dump(process: Process, configuration: Configuration, line: CommandLine) -> int:
    """What the files say, in drbdadm's own layout."""
    chosen = [name for name in line.objects if name != "all"] or list(configuration.resources)
    for name in chosen:
        resource = configuration.resources.get(name)
        if resource is None:
            process.err(f"'{name}' not defined in your config (for this host).\n")
            return _FAILED
        process.out(dump_config.text(resource, host=process.host.name, defined_at=configuration.where(name)))
    return 0
