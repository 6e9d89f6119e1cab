"""The product's agent, unchanged, with every command it runs told to the host, and its deaths at commands.

Run as ``python3 agent.py agent --node-name ...``: what stands after the file's name is the ``quorate`` command line.
What is told goes through a virtio port into a file of the host, so that a power loss leaves it whole.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from killing import Killing  # type: ignore[import-not-found]

from quorate.agent.linux import LinuxMachine
from quorate.agent.machine import Completed, FileBeneath
from quorate.cli import main

PORT = "/dev/virtio-ports/metal.commands"
DIED = Path("/var/lib/metal/died.json")
ARMED = Path("/var/lib/metal/kill-at-commands")


def _open() -> int:
    for _ in range(100):
        try:
            return os.open(PORT, os.O_WRONLY)
        except OSError:  # the agent before us has not quite gone
            time.sleep(0.05)
    return os.open("/dev/null", os.O_WRONLY)


_port = -1


def tell(**what: object) -> None:
    global _port
    if _port < 0:
        _port = _open()
    os.write(_port, (json.dumps({"time": time.time(), **what}) + "\n").encode())


class Told(LinuxMachine):
    """The machine, overheard."""

    async def run(self, *argv: str, silence: float, stdin: FileBeneath | None = None) -> Completed:
        killing = Killing(tuple(json.loads(DIED.read_text()))) if ARMED.exists() and DIED.exists() else None
        if killing is None and ARMED.exists():
            killing = Killing()
        if killing is not None and killing.dies_before(argv):
            _die(killing)
        try:
            done = await super().run(*argv, silence=silence, stdin=stdin)
        except Exception as error:
            tell(command=" ".join(argv), exit=None, output=f"{type(error).__name__}: {error}")
            raise
        tell(command=" ".join(argv), exit=done.exit_code, output=done.stdout + done.stderr)
        if killing is not None and killing.dies_after(argv):
            _die(killing)
        return done

    async def write_file(self, path: str, content: bytes) -> None:
        await super().write_file(path, content)
        tell(file=path, text=content.decode(errors="replace"))

    async def move_file(self, source: str, destination: str) -> None:
        await super().move_file(source, destination)
        tell(file=destination, text=(await self.read_file(destination)).decode(errors="replace"))

    async def remove_file(self, path: str) -> None:
        await super().remove_file(path)
        tell(command=f"rm -f {path}", exit=0, output="")


def _die(killing: Killing) -> None:
    DIED.write_text(json.dumps(killing.died))
    tell(died=killing.died[-1])
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    import quorate.server.agent

    quorate.server.agent.LinuxMachine = Told  # type: ignore[attr-defined]
    main()
