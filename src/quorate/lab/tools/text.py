"""Filters: grep, head, tail."""

from __future__ import annotations

import re

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
    count, paths = _count(argv)
    process.out("".join(f"{line}\n" for line in _lines(process, paths)[:count]))
    return 0


def tail(process: Process, argv: list[str]) -> int:
    """The last lines."""
    count, paths = _count(argv)
    lines = _lines(process, paths)
    process.out("".join(f"{line}\n" for line in lines[max(0, len(lines) - count) :]))
    return 0


def _count(argv: list[str]) -> tuple[int, list[str]]:
    count, paths, words = 10, [], iter(argv[1:])
    for word in words:
        if word == "-n":
            count = int(next(words, "10"))
        elif word.startswith("-") and word.lstrip("-n").isdecimal():
            count = int(word.lstrip("-n"))
        else:
            paths.append(word)
    return count, paths


def _lines(process: Process, paths: list[str]) -> list[str]:
    data = b"".join(process.host.read(path) for path in paths) if paths else process.stdin()
    return data.decode(errors="replace").splitlines()
