"""Where a recorded command's outcome and the model's differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from quorate.lab.recordings.compare_status import Difference
from quorate.lab.recordings.recording import Command
from quorate.lab.tools.process import Result

_ERROR_NUMBER = re.compile(r"(?:Failure|failed): \((-?\d+)\)")
_VOLATILE = (
    (re.compile(r"pid \d+"), "pid N"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"), "TIME"),
    (re.compile(r"\b[A-Z][a-z]{2} +\d+ \d\d:\d\d"), "DATE"),
    (re.compile(r"\b(?:0x)?[0-9A-F]{16}\b"), "UUID"),
    (re.compile(r"^[0-9]+ bytes .*copied, .*$|^\d+\+\d+ records (?:in|out)$", re.MULTILINE), "COPIED"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "MD5"),
    (re.compile(r"\b(read|written|al-writes|bm-writes|received|sent):\d+"), r"\1:N"),
)
_DUMP_FIELDS = re.compile(
    r"^(version|max-peers|# md_size_sect|# md_offset|# al_offset|# bm_offset|node-id|la-size-sect|This_is_an_unclean)"
    r"(.*)$",
    re.MULTILINE,
)
_TIE_BREAKER = "tiebreaker logic to keep"
_STATUS = re.compile(r"(?:sudo\s+)?drbdsetup\s+status\s+(?P<words>[^|&;<>`$]*)$")


@dataclass(frozen=True, slots=True)
class Look:
    """A command that only looks: what it showed, and of which resource if not of all."""

    status: list[dict[str, Any]]
    resource: str | None


def look(step: Command) -> Look | None:
    """A ``drbdsetup status --json`` among the commands; None for everything else, and if it showed nothing."""
    match = _STATUS.match(step.command.strip())
    words = match["words"].split() if match else []
    if not {"--json", "-j"} & set(words) or step.exit != 0:
        return None
    try:
        shown = msgspec.json.decode(step.output, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return None
    named = [word for word in words if not word.startswith("-") and word != "all"]
    return Look(shown, named[0] if named else None)


def differences(step: Command, result: Result, log_since_cut: str) -> list[Difference]:
    """Nothing if the command did what was recorded."""
    return list(_differences(step, result, log_since_cut))


def _differences(step: Command, result: Result, log_since_cut: str) -> Iterator[Difference]:
    if result.exit_code != step.exit:
        yield Difference("exit code", step.exit, f"{result.exit_code}: {result.output.strip()[:300]}")
    expected, seen = step.output, result.output
    if _ERROR_NUMBER.findall(expected) != _ERROR_NUMBER.findall(seen):
        yield Difference("error numbers", _ERROR_NUMBER.findall(expected), _ERROR_NUMBER.findall(seen))
    if "dmesg" in step.command:
        said, says = _TIE_BREAKER in expected, _TIE_BREAKER in log_since_cut
        if said != says and (said or not expected):  # a long log was cut off at its beginning by the recorder's tail
            yield Difference("tie-breaker in the kernel log", said, says)
    elif meaning(step.command, expected) != meaning(step.command, seen):
        yield Difference("output", meaning(step.command, expected), meaning(step.command, seen))


def meaning(command: str, output: str) -> object:
    """What a command said, without what no two runs have in common."""
    if "dump-md" in command and "DRBD meta data dump" in output:
        return dict(_DUMP_FIELDS.findall(output))
    if "--json" in command:
        try:
            return json.loads(output)
        except ValueError:
            pass
    text = "\n".join(line.rstrip() for line in output.strip().splitlines())
    for pattern, replacement in _VOLATILE:
        text = pattern.sub(replacement, text)
    if "create-md" in command:  # it talks on two streams, and a recorder may have joined them in either order
        return sorted(text.splitlines())
    return text
