"""Commands on files: cat, mv, rm, ls, mkdir, touch, cmp, md5sum and its kind."""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import time
from collections.abc import Callable, Hashable

from quorate.lab.kernel.block import BLOCK
from quorate.lab.tools.process import Process, Program


def _split(argv: list[str]) -> tuple[str, list[str]]:
    """The letters of all options, and the rest."""
    flags = "".join(word[1:] for word in argv[1:] if word.startswith("-") and word != "-")
    return flags, [word for word in argv[1:] if not word.startswith("-") or word == "-"]


def cat(process: Process, argv: list[str]) -> int:
    """Print files, or what comes in."""
    _flags, paths = _split(argv)
    exit_code = 0
    for path in paths or ["-"]:
        try:
            data = process.stdin() if path == "-" else process.host.read(path)
        except OSError as error:
            process.err(f"cat: can't open '{path}': {error.strerror}\n")
            exit_code = 1
        else:
            process.descriptors[1].write(data)
    return exit_code


def mv(process: Process, argv: list[str]) -> int:
    """Rename a file."""
    _flags, paths = _split(argv)
    if len(paths) != 2:
        process.err("mv: two paths are needed\n")
        return 1
    source, destination = paths
    if source not in process.host.files:
        process.err(f"mv: can't rename '{source}': No such file or directory\n")
        return 1
    process.host.files[destination] = process.host.files.pop(source)
    return 0


def rm(process: Process, argv: list[str]) -> int:
    """Remove files."""
    flags, paths = _split(argv)
    exit_code = 0
    for path in paths:
        inside = [name for name in process.host.files if name.startswith(path.rstrip("/") + "/")]
        if path in process.host.files:
            del process.host.files[path]
        elif inside and "r" in flags.lower():
            for name in inside:
                del process.host.files[name]
        elif "f" not in flags:
            process.err(f"rm: can't remove '{path}': No such file or directory\n")
            exit_code = 1
    return exit_code


def ls(process: Process, argv: list[str]) -> int:
    """List a directory."""
    flags, paths = _split(argv)
    exit_code = 0
    for path in paths or ["/"]:
        names = process.host.list_directory(path)
        if path in process.host.files:
            names = (path,)
        elif names is None:
            process.err(f"ls: {path}: No such file or directory\n")
            exit_code = 1
            continue
        if "l" in flags:
            _long(process, path, names, everything="a" in flags)
        else:
            process.out("".join(f"{name}\n" for name in names))
    return exit_code


def _long(process: Process, path: str, names: tuple[str, ...], *, everything: bool) -> None:
    when = time.strftime("%b %d %H:%M", time.gmtime(process.host.wall_clock()))
    sizes = {name: len(process.host.files.get(f"{path.rstrip('/')}/{name}", b"")) for name in names}
    process.out(f"total {sum(-(-size // 4096) * 4 for size in sizes.values())}\n")
    if everything:
        for name, directory in ((".", path), ("..", posixpath.dirname(path.rstrip("/")) or "/")):
            inside = process.host.list_directory(directory) or ()
            below = directory.rstrip("/")
            links = 2 + sum(f"{below}/{entry}" not in process.host.files for entry in inside)
            size = 40 + 20 * len(inside)  # as a file system in memory counts
            process.out(f"drwxr-xr-x {links:>4} 0        0        {size:>9} {when} {name}\n")
    for name, size in sizes.items():
        process.out(f"-rw-r--r--    1 0        0        {size:>9} {when} {name}\n")


def mkdir(_process: Process, _argv: list[str]) -> int:
    """Make a directory."""
    return 0  # directories are there when something is in them


def touch(process: Process, argv: list[str]) -> int:
    """Make an empty file."""
    for path in _split(argv)[1]:
        process.host.files.setdefault(path, b"")
    return 0


def sync(process: Process, _argv: list[str]) -> Program:
    """Make writes durable: those in the page cache are waited for, on a suspended device for as long as it is so."""
    yield from process.host.flushed()
    return 0


def cmp(process: Process, argv: list[str]) -> int:
    """Compare two files or devices, block by block; a device goes on where a file ends."""
    _flags, paths = _split(argv)
    if len(paths) != 2:
        process.err("cmp: two paths are needed\n")
        return 2
    try:
        one, other = (_blocks(process, path) for path in paths)
    except OSError as error:
        process.err(f"cmp: {error.filename}: {error.strerror}\n")
        return 2
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            process.out(f"{paths[0]} {paths[1]} differ: byte {at * BLOCK + 1}, line 1\n")
            return 1
    if len(one) == len(other):
        return 0
    shorter = paths[0] if len(one) < len(other) else paths[1]
    process.err(f"cmp: EOF on {shorter} after byte {min(len(one), len(other)) * BLOCK}, in line 1\n")
    return 1


def _blocks(process: Process, path: str) -> list[Hashable]:
    """What each block holds: None for zeroes, a file's bytes, or what a device has been told it holds."""
    device = process.host.block_device(path)
    if device is not None:
        if device.failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        runs = device.contents.runs(0, device.size // BLOCK)
        return [tag for start, end, tag in runs for _ in range(start, end)]
    data = process.stdin() if path == "-" else process.host.read(path)
    pieces = (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))
    return [piece if piece.strip(b"\0") else None for piece in pieces]


def checksum(name: str) -> Callable[[Process, list[str]], int]:
    """``md5sum`` and its kind: digest files."""

    def digest(process: Process, argv: list[str]) -> int:
        exit_code = 0
        for path in _split(argv)[1] or ["-"]:
            try:
                data = process.stdin() if path == "-" else process.host.read(path)
            except OSError as error:
                process.err(f"{argv[0]}: can't open '{path}': {error.strerror}\n")
                exit_code = 1
            else:
                process.out(f"{hashlib.new(name, data, usedforsecurity=False).hexdigest()}  {path}\n")
        return exit_code

    return digest
