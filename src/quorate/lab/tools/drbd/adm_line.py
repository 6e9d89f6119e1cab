"""The command line of drbdadm: its own options, and those of the command, which go on to the backend."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.lab.tools.conf import options

_FILES = {
    "-c": "main",
    "--config-file": "main",
    "-t": "test",
    "--config-to-test": "test",
    "-E": "exclude",
    "--config-to-exclude": "exclude",
}
_OF_COMMANDS: dict[str, frozenset[str]] = {
    "adjust": frozenset({"skip-disk", "skip-net", "tentative", "discard-my-data"}),
    "primary": frozenset({"force"}),
    "secondary": frozenset({"force"}),
    "dstate": frozenset({"force"}),
    "connect": frozenset({"tentative", "discard-my-data"}),
    "disconnect": frozenset({"force"}),
    "forget-peer": frozenset({"force"}),
    "attach": frozenset(options.DISK),
    "detach": frozenset({"force", "diskless"}),
    "resize": frozenset({"size", "assume-peer-has-space", "assume-clean", "al-stripes", "al-stripe-size-kB"}),
    "invalidate": frozenset({"force", "sync-from-peer-node-id", "reset-bitmap"}),
    "new-current-uuid": frozenset({"clear-bitmap", "force-resync"}),
    "verify": frozenset({"start", "stop"}),
    "invalidate-remote": frozenset({"reset-bitmap"}),
    "create-md": frozenset({"max-peers", "peer-max-bio-size", "al-stripes", "al-stripe-size-kB", "force"}),
    **dict.fromkeys(("dump-md", "apply-al", "wipe-md"), frozenset({"force"})),
}
"""What drbdadm 9.22 takes with each command; a command that is not here takes none."""


class UnknownOption(Exception):
    """An option that the command does not take, in drbdadm's words."""


@dataclass
class CommandLine:
    """What is to be done, to what, and how."""

    files: dict[str, str] = field(default_factory=dict)
    command: str = ""
    objects: list[str] = field(default_factory=list)
    #: Options for the backend, wherever they stood.
    passed_on: list[str] = field(default_factory=list)
    #: Say every backend command; and do nothing else.
    verbose: bool = False
    dry_run: bool = False
    #: The seconds by which backend commands were late, all together.
    late: float = 0.0


def read(words: list[str]) -> CommandLine:
    """Sort the words. What stands behind ``--`` goes on unread. Raises UnknownOption."""
    line, stream, unread = CommandLine(), iter(words), False
    checked: list[str] = []
    for word in stream:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            if line.command:
                line.objects.append(word)
            else:
                line.command = word
        elif unread:
            line.passed_on.append(word)
        elif name in _FILES:
            line.files[_FILES[name]] = value if equals else next(stream, "")
        elif word in ("-d", "--dry-run"):
            line.dry_run = True
        elif word in ("-v", "--verbose"):
            line.verbose = True
        elif word == "--":
            unread = True
        elif word not in ("-S", "--stacked"):
            checked.append(name)
            if not equals and options.takes_value(name[2:]):
                word = f"{word}={next(stream, '')}"
            line.passed_on.append(word)
    for name in checked:
        _check(line.command, name)
    return line


def _check(command: str, name: str) -> None:
    if name.removeprefix("--") in _OF_COMMANDS.get(command, ()):
        return
    problem = f"unrecognized option '{name}'" if name.startswith("--") else f"invalid option -- '{name[1:2]}'"
    raise UnknownOption(f"drbdadm: {problem}\ntry 'drbdadm help'\n")
