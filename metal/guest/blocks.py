"""Reads blocks of a device, directly: ``blocks.py DEVICE NUMBER...``; a line for each, as ``machines.block_name``."""

import mmap
import os
import sys

BLOCK = 4096


def main() -> None:
    file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, BLOCK)
    for number in map(int, sys.argv[2:]):
        count = os.preadv(file, [page], number * BLOCK)
        data = page[:count]
        head = data.partition(b"\n")[0]
        if not data.strip(b"\0"):
            print("-")
        elif len(head) <= 40 and head.isascii() and b"." in head:
            print(head.decode())
        else:
            print("?")


main()
