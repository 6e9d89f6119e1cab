"""Commands on block devices that end at once: blockdev, wipefs, blkdiscard."""

from __future__ import annotations

from quorate.lab.kernel import metadata
from quorate.lab.kernel.block import BLOCK
from quorate.lab.tools.process import Process, Program

_MAGIC_LENGTH = 4


def blockdev(process: Process, argv: list[str]) -> Program:
    """One question about one device."""
    queries = [word for word in argv[1:] if word.startswith("--")]
    paths = [word for word in argv[1:] if not word.startswith("--")]
    if len(queries) != 1 or len(paths) != 1:
        process.err("blockdev: one query and one device are needed\n")
        return 1
    size = _size(process, paths[0])
    if isinstance(size, str):
        process.err(f"blockdev: can't open '{paths[0]}': {size}\n")
        return 1
    answers = {"--getsize64": size, "--getsz": size // 512, "--getss": 512, "--getbsz": BLOCK, "--getpbsz": BLOCK}
    if queries[0] == "--flushbufs":
        yield from process.host.flushed(process.host.minor(paths[0]))
        return 0
    if queries[0] not in answers:
        process.err(f"blockdev: unknown query {queries[0]}\n")
        return 1
    process.out(f"{answers[queries[0]]}\n")
    return 0


def _size(process: Process, path: str) -> int | str:
    """The size in bytes, or why the device does not open."""
    minor = process.host.minor(path)
    if minor is None:
        device = process.host.block_device(path)
        return device.size if device is not None else "No such file or directory"
    if not process.host.kernel.open(minor, process.name, process.pid, writable=False):
        return "Wrong medium type"
    size = process.host.kernel.device_size(minor)
    process.host.kernel.close(minor, process.pid)
    return size or 0


def wipefs(process: Process, argv: list[str]) -> int:
    """Show or erase signatures."""
    wipe = any(word in ("-a", "--all", "-af", "-fa") for word in argv[1:])
    for path in [word for word in argv[1:] if not word.startswith("-")]:
        device = process.host.block_device(path)
        if device is None:
            process.err(f"wipefs: error: {path}: probing initialization failed: No such file or directory\n")
            return 1
        if device.holder is not None and wipe:
            process.err(f"wipefs: error: {path}: probing initialization failed: Device or resource busy\n")
            return 1
        drive = process.host.bays.by_name(path.removeprefix("/dev/"))
        if drive is not None and wipe:
            drive.filesystem, drive.partitions = "", ()
        if metadata.find(device) is None:
            continue
        offset = device.size - BLOCK
        if wipe:
            metadata.wipe(device)
            process.out(f"{path}: {_MAGIC_LENGTH} bytes were erased at offset 0x{offset:08x} (drbd): 83 74 02 6d\n")
        else:
            process.out(f"DEVICE OFFSET TYPE UUID LABEL\n{path} 0x{offset:x} drbd\n")
    return 0


def blkdiscard(process: Process, argv: list[str]) -> int:
    """Discarded and zeroed blocks read as zeroes."""
    paths = [word for word in argv[1:] if word.startswith("/")]
    if len(paths) != 1:
        process.err("blkdiscard: one device is needed\n")
        return 1
    device = process.host.block_device(paths[0])
    if device is None:
        process.err(f"blkdiscard: cannot open {paths[0]}: No such file or directory\n")
        return 1
    if device.holder is not None:
        process.err(f"blkdiscard: {paths[0]}: Device or resource busy\n")
        return 1
    if device.failed:
        process.err(f"blkdiscard: {paths[0]}: BLKDISCARD ioctl failed: Input/output error\n")
        return 1
    device.write(0, device.size, None)
    return 0
