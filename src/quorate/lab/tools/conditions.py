"""``test`` and ``[``: whether something is so."""

from __future__ import annotations

from collections.abc import Callable

from quorate.lab.tools.process import Process

_SO, _NOT_SO, _MISUSED = 0, 1, 2
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def test(process: Process, argv: list[str]) -> int:
    """The command line; ``[`` wants a ``]`` at its end."""
    words = argv[1:]
    if argv[0] == "[":
        if words[-1:] != ["]"]:
            process.err("sh: [: missing ]\n")
            return _MISUSED
        words = words[:-1]
    try:
        return _SO if _any(process, words) else _NOT_SO
    except ValueError as error:
        process.err(f"sh: {argv[0]}: {error}\n")
        return _MISUSED


def _any(process: Process, words: list[str]) -> bool:
    if "-o" in words:
        at = words.index("-o")
        return _all(process, words[:at]) or _any(process, words[at + 1 :])
    return _all(process, words)


def _all(process: Process, words: list[str]) -> bool:
    if "-a" in words:
        at = words.index("-a")
        return _one(process, words[:at]) and _all(process, words[at + 1 :])
    return _one(process, words)


def _one(process: Process, words: list[str]) -> bool:
    match words:
        case []:
            return False
        case ["!", *rest]:
            return not _one(process, rest)
        case [text]:
            return bool(text)
        case ["-n", text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case [flag, path] if flag in ("-e", "-f", "-d", "-b", "-s", "-r", "-w"):
            return _is(process, flag, path)
        case [first, operator, second] if operator in _TEXTS:
            return _TEXTS[operator](first, second)
        case [first, operator, second] if operator in _NUMBERS:
            return _NUMBERS[operator](_number(first), _number(second))
    raise ValueError(f"{' '.join(words)}: unknown condition")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text}: bad number") from None


def _is(process: Process, flag: str, path: str) -> bool:
    host = process.host
    device = host.block_device(path) is not None or host.minor(path) is not None
    file, directory = path in host.files, host.list_directory(path) is not None
    match flag:
        case "-b":
            return device
        case "-d":
            return directory and not file
        case "-f":
            return file
        case "-s":
            return bool(host.files.get(path)) or directory
    return file or device or directory
