"""``smartctl --json``: what a drive says of itself, in the shapes that ATA and NVMe drives have.

The exit code is a mask, as documented: 2 the device did not open, 8 the drive says it fails, 16 an attribute is below
its threshold, 64 the drive has logged errors.
"""

from __future__ import annotations

import json

from quorate.lab.drives import Drive, Medium
from quorate.lab.tools.process import Process

_NOT_OPENED, _FAILING, _PREFAIL, _ERRORS = 2, 8, 16, 64
_VERSION = [7, 3]


def smartctl(process: Process, argv: list[str]) -> int:
    """The command line."""
    paths = [word for word in argv[1:] if word.startswith("/")]
    if len(paths) != 1:
        process.err("smartctl: expected exactly one device\n")
        return 1
    name = paths[0].removeprefix("/dev/")
    drive = process.host.bays.by_name(name.removesuffix("n1") + "n1" if name.startswith("nvme") else name)
    as_json = any(word in ("-j", "--json") or word.startswith("--json=") for word in argv[1:])
    if drive is None:
        return _unopened(process, paths[0], as_json)
    exit_code = _exit_code(drive)
    report = _report(drive, paths[0], exit_code, argv)
    if as_json:
        process.out(json.dumps(report, indent=2) + "\n")
    else:
        verdict = "PASSED" if drive.smart.passed else "FAILED!"
        process.out(f"SMART overall-health self-assessment test result: {verdict}\n")
    return exit_code


def _unopened(process: Process, path: str, as_json: bool) -> int:
    text = f"Smartctl open device: {path} failed: No such device"
    if as_json:
        messages = [{"string": text, "severity": "error"}]
        tool = {"version": _VERSION, "messages": messages, "exit_status": _NOT_OPENED}
        process.out(json.dumps({"json_format_version": [1, 0], "smartctl": tool}, indent=2) + "\n")
    else:
        process.out(text + "\n")
    return _NOT_OPENED


def _exit_code(drive: Drive) -> int:
    code = 0 if drive.smart.passed else _FAILING
    if not drive.smart.passed and drive.medium is not Medium.NVME:
        code |= _PREFAIL
    return code | (_ERRORS if drive.smart.media_errors else 0)


def _report(drive: Drive, path: str, exit_code: int, argv: list[str]) -> dict[str, object]:
    nvme = drive.medium is Medium.NVME
    kind, protocol = ("nvme", "NVMe") if nvme else ("sat", "ATA")
    report: dict[str, object] = {
        "json_format_version": [1, 0],
        "smartctl": {"version": _VERSION, "argv": argv, "exit_status": exit_code},
        "device": {"name": path, "info_name": f"{path} [{protocol}]", "type": kind, "protocol": protocol},
        "model_name": f"{drive.vendor} {drive.model}",
        "serial_number": drive.serial,
        "firmware_version": drive.firmware,
        "user_capacity": {"blocks": drive.size // 512, "bytes": drive.size},
        "logical_block_size": 512,
        "smart_support": {"available": True, "enabled": True},
        "smart_status": {"passed": drive.smart.passed},
        "temperature": {"current": drive.smart.temperature},
        "power_on_time": {"hours": drive.smart.power_on_hours},
        "power_cycle_count": 12,
    }
    if nvme:
        report["smart_status"] = {"passed": drive.smart.passed, "nvme": {"value": 0 if drive.smart.passed else 4}}
        report["nvme_smart_health_information_log"] = _nvme_log(drive)
    else:
        report["rotation_rate"] = 7200 if drive.medium is Medium.HDD else 0
        report["ata_smart_attributes"] = {"revision": 16, "table": _ata_table(drive)}
    if drive.medium is not Medium.HDD:
        report["endurance_used"] = {"current_percent": drive.smart.endurance_used}
    return report


def _nvme_log(drive: Drive) -> dict[str, int]:
    return {
        "critical_warning": 0 if drive.smart.passed else 4,
        "temperature": drive.smart.temperature,
        "available_spare": 100 if drive.smart.passed else 3,
        "available_spare_threshold": 10,
        "percentage_used": drive.smart.endurance_used,
        "power_on_hours": drive.smart.power_on_hours,
        "power_cycles": 12,
        "unsafe_shutdowns": 1,
        "media_errors": drive.smart.media_errors,
        "num_err_log_entries": drive.smart.media_errors,
    }


def _ata_table(drive: Drive) -> list[dict[str, object]]:
    smart = drive.smart
    rows = [
        (5, "Reallocated_Sector_Ct", 100 if smart.passed else 5, 10, smart.reallocated_sectors),
        (9, "Power_On_Hours", 99, 0, smart.power_on_hours),
        (194, "Temperature_Celsius", 100 - smart.temperature, 0, smart.temperature),
        (197, "Current_Pending_Sector", 100, 0, smart.pending_sectors),
        (198, "Offline_Uncorrectable", 100, 0, smart.media_errors),
    ]
    if drive.medium is Medium.SSD:
        rows.append((231, "SSD_Life_Left", max(0, 100 - smart.endurance_used), 5, max(0, 100 - smart.endurance_used)))
    return [
        {
            "id": number,
            "name": name,
            "value": value,
            "worst": value,
            "thresh": threshold,
            "when_failed": "now" if threshold and value <= threshold else "",
            "raw": {"value": raw, "string": str(raw)},
        }
        for number, name, value, threshold, raw in rows
    ]
