"""Writes block after block to a device, directly, one at a time, and says when each began and how it ended.

``writer.py DEVICE TAG FIRST PAUSE dsync|plain``. A line for each: ``begin BLOCK TIME`` and ``end BLOCK TIME RESULT``.
"""

import errno
import mmap
import os
import sys
import time

BLOCK = 4096


def main() -> None:
    device, tag, first, pause, kind = sys.argv[1:6]
    flags = os.O_WRONLY | os.O_DIRECT | (os.O_DSYNC if kind == "dsync" else 0)
    file = os.open(device, flags)
    page = mmap.mmap(-1, BLOCK)
    block = int(first)
    while True:
        page[:] = f"{block}.{tag}\n".encode().ljust(BLOCK, b"\0")
        print(f"begin {block} {time.time():.6f}", flush=True)
        try:
            os.pwrite(file, page, block * BLOCK)
            result = "ok"
        except OSError as error:
            result = errno.errorcode.get(error.errno or 0, str(error.errno))
        print(f"end {block} {time.time():.6f} {result}", flush=True)
        if result == "ENOSPC":
            return
        block += 1
        time.sleep(float(pause))


main()
