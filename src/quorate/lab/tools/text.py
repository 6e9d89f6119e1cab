"""Filters: grep, head, tail, wc, cut."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from quorate.lab.tools import arguments
from quorate.lab.tools.process import Process


def grep(process: Process, argv: list[str]) -> int:
    """Lines that match."""
    flags = "".join(word[1:] for word in argv[1:] if word.startswith("-"))
    words = [word for word in argv[1:] if not word.startswith("-")]
    if not words:
        process.err("grep: a pattern is needed\n")
        return 2
    source = words[0]
    if "F" in flags:
        source = re.escape(source)
    elif "E" not in flags:
        source = source.replace(r"\|", "\0").replace("|", r"\|").replace("\0", "|")
    pattern = re.compile(source, re.IGNORECASE if "i" in flags else 0)
    lines = [line for line in _lines(process, words[1:]) if bool(pattern.search(line)) != ("v" in flags)]
    if "c" in flags:
        process.out(f"{len(lines)}\n")
    elif "q" not in flags:
        process.out("".join(f"{line}\n" for line in lines))
    return 0 if lines else 1


def head(process: Process, argv: list[str]) -> int:
    """The first lines."""
    return _some(process, argv, lambda lines, count: lines[:count])


def tail(process: Process, argv: list[str]) -> int:
    """The last lines."""
    return _some(process, argv, lambda lines, count: lines[max(0, len(lines) - count) :])


def _some(process: Process, argv: list[str], choose: Callable[[list[str], int], list[str]]) -> int:
    try:
        count, paths = _count(argv)
    except ValueError as error:
        process.err(f"{argv[0]}: invalid number '{error}'\n")
        return 1
    process.out("".join(f"{line}\n" for line in choose(_lines(process, paths), count)))
    return 0


def _count(argv: list[str]) -> tuple[int, list[str]]:
    count, paths, words = "10", [], iter(argv[1:])
    for word in words:
        if word in ("-n", "--lines"):
            count = next(words, "")
        elif word.startswith("-") and word.lstrip("-n").isdecimal():
            count = word.lstrip("-n")
        else:
            paths.append(word)
    if not count.isdecimal():
        raise ValueError(count)
    return int(count), paths


def wc(process: Process, argv: list[str]) -> int:
    """Count lines, words and bytes."""
    flags = "".join(word[1:] for word in argv[1:] if word.startswith("-")) or "lwc"
    for path in [word for word in argv[1:] if not word.startswith("-")] or [""]:
        data = process.host.read(path) if path else process.stdin()
        counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
        chosen = [str(counts[flag]) for flag in "lwc" if flag in flags]
        process.out(" ".join([*chosen, path]).rstrip() + "\n")
    return 0


def cut(process: Process, argv: list[str]) -> int:
    """Parts of each line: ``-c1-3``, ``-d: -f2``."""
    found = arguments.read(argv[1:], values={"-c": "c", "-b": "c", "-f": "f", "-d": "d"}, flags={"-s": "s"})
    listed = found.get("c") or found.get("f")
    try:
        ranges = [_range(part) for part in listed.split(",")]
    except ValueError:
        process.err(f"cut: invalid list '{listed}'\n")
        return 1
    for line in _lines(process, found.rest):
        separator = found.get("d", "\t")
        parts = list(line) if found.has("c") else line.split(separator)
        if not found.has("c") and len(parts) == 1:
            process.out(f"{line}\n")
            continue
        chosen = [part for at, part in enumerate(parts, 1) if any(low <= at <= high for low, high in ranges)]
        process.out(("" if found.has("c") else separator).join(chosen) + "\n")
    return 0


def _range(text: str) -> tuple[int, float]:
    low, dash, high = text.partition("-")
    if not dash:
        return int(low), int(low)
    return int(low or 1), int(high) if high else math.inf


def _lines(process: Process, paths: list[str]) -> list[str]:
    data = b"".join(process.host.read(path) for path in paths) if paths else process.stdin()
    return data.decode(errors="replace").splitlines()
