"""Reads ``smartctl --json --all``, and judges by it.

Its exit code is a mask of warnings, not a verdict: what counts is what it says.

| says                                                                                  | health  |
|---------------------------------------------------------------------------------------|---------|
| the drive's own verdict is "failed"; NVMe: reliability degraded, or read only          | BAD     |
| ATA: pending, uncorrectable or reallocated sectors; an attribute below its threshold   | SUSPECT |
| NVMe: any other critical warning; media errors; spare below its threshold              | SUSPECT |
| SCSI: grown defects; uncorrected errors                                                | SUSPECT |
| all of its rated writes are used up                                                    | SUSPECT |
| nothing of that, and there is a verdict or a log                                       | GOOD    |
| no verdict and no log, or nothing that can be read                                     | UNKNOWN |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from quorate.api.baremetal.drive import DriveHealth, SmartReport
from quorate.api.struct import replace


def smartctl(path: str) -> tuple[str, ...]:
    """The command line."""
    return ("smartctl", "--json", "--all", path)


#: ATA attributes of which a raw value above zero means that data was, or may be, lost.
_BAD_SECTORS: Final = {
    5: "reallocated sectors",
    187: "reported uncorrectable errors",
    197: "pending sectors",
    198: "uncorrectable sectors",
}

#: Bits of NVMe's critical warning.
_SPARE_LOW, _TOO_HOT, _DEGRADED, _READ_ONLY, _BACKUP_FAILED = 1, 2, 4, 8, 16
_WARNINGS: Final = {
    _SPARE_LOW: "spare space is below its threshold",
    _TOO_HOT: "the temperature is out of bounds",
    _DEGRADED: "its reliability is degraded",
    _READ_ONLY: "it has become read only",
    _BACKUP_FAILED: "the backup of its volatile memory has failed",
}

_MESSAGE_LENGTH: Final = 1000

Tree = dict[str, Any]


def judge(output: str) -> SmartReport:
    """What a drive says of itself. Never raises: what cannot be read is UNKNOWN."""
    try:
        report = msgspec.json.decode(output)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return SmartReport(message="smartctl gave nothing that can be read.")
    if not isinstance(report, dict):
        return SmartReport(message="smartctl gave nothing that can be read.")
    verdict = _branch(report, "smart_status").get("passed")
    log = _branch(report, "nvme_smart_health_information_log")
    table = _branch(report, "ata_smart_attributes").get("table")
    bad, suspect = [], [*_ata(table), *_nvme(log), *_scsi(report)]
    warning = _count(log, "critical_warning")
    if warning & (_DEGRADED | _READ_ONLY):
        bad += [text for bit, text in _WARNINGS.items() if warning & bit & (_DEGRADED | _READ_ONLY)]
    elif verdict is False and not warning:
        # smartctl says "failed" of an NVMe drive for any warning at all, a high temperature included.
        bad.append("it says of itself that it fails")
    used = _endurance(report, log)
    if used is not None and used >= 100:
        suspect.append(f"{used} % of its rated writes are used")
    known = isinstance(verdict, bool) or bool(log) or isinstance(table, list)
    return SmartReport(
        health=_health(known, bool(bad), bool(suspect)),
        message=_message(report, known, [*bad, *suspect]),
        temperature_celsius=_temperature(report),
        endurance_used_percent=used,
    )


def but_for_temperature(report: SmartReport | None) -> SmartReport | None:
    """A report without what changes all the time."""
    return None if report is None else replace(report, temperature_celsius=None)


def _health(known: bool, bad: bool, suspect: bool) -> DriveHealth:
    if bad:
        return DriveHealth.BAD
    if suspect:
        return DriveHealth.SUSPECT
    return DriveHealth.GOOD if known else DriveHealth.UNKNOWN


def _message(report: Tree, known: bool, problems: list[str]) -> str:
    if problems:
        return _capital(f"{'; '.join(problems)}.")[:_MESSAGE_LENGTH]
    if known:
        return ""
    messages = _branch(report, "smartctl").get("messages")
    said = [_branch({"": each}, "").get("string") for each in messages] if isinstance(messages, list) else []
    texts = [text for text in said if isinstance(text, str)]
    return f"Nothing is known: {'; '.join(texts) or 'the drive reports no health'}."[:_MESSAGE_LENGTH]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ata(table: object) -> Iterator[str]:
    for row in table if isinstance(table, list) else ():
        if not isinstance(row, dict):
            continue
        number, raw = row.get("id"), _count(_branch(row, "raw"), "value")
        if isinstance(number, int) and number in _BAD_SECTORS and raw:
            yield f"{raw} {_BAD_SECTORS[number]}"
        if row.get("when_failed") == "now":
            yield f"{row.get('name', number)} is below its threshold"


def _nvme(log: Tree) -> Iterator[str]:
    warning = _count(log, "critical_warning")
    yield from (text for bit, text in _WARNINGS.items() if warning & bit and not bit & (_DEGRADED | _READ_ONLY))
    errors = _count(log, "media_errors")
    if errors:
        yield f"{errors} media errors"
    if not warning & _SPARE_LOW and "available_spare" in log:
        spare, threshold = _count(log, "available_spare"), _count(log, "available_spare_threshold")
        if spare < threshold:
            yield f"{spare} % spare space is left, the threshold is {threshold} %"


def _scsi(report: Tree) -> Iterator[str]:
    defects = _count(report, "scsi_grown_defect_list")
    if defects:
        yield f"{defects} grown defects"
    log = _branch(report, "scsi_error_counter_log")
    errors = sum(_count(_branch(log, what), "total_uncorrected_errors") for what in ("read", "write", "verify"))
    if errors:
        yield f"{errors} uncorrected errors"


def _endurance(report: Tree, log: Tree) -> int | None:
    for tree, name in (
        (_branch(report, "endurance_used"), "current_percent"),
        (log, "percentage_used"),
        (report, "scsi_percentage_used_endurance_indicator"),
    ):
        if name in tree:
            return _count(tree, name)
    return None


def _temperature(report: Tree) -> int | None:
    value = _branch(report, "temperature").get("current")
    return value if isinstance(value, int) and not isinstance(value, bool) and -273 <= value <= 1000 else None


def _branch(tree: Tree, name: str) -> Tree:
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def _count(tree: Tree, name: str) -> int:
    value = tree.get(name)
    sane = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return int(value) if sane and value is not None else 0
