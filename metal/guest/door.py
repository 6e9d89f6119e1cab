"""Runs inside a machine: commands come over a virtio port, one JSON line each; so do their words and exit codes.

Only Python's own library. A command that hangs in the kernel keeps its own thread and nothing else. In goes
``{"id", "run": shell text}``, ``{"id", "kill": true}`` or ``{"id", "file": path, "data": base64}``; out come
``{"id", "out": text}`` while it runs and ``{"id", "exit": code}`` at its end.
"""

import base64
import json
import os
import signal
import subprocess
import threading
import time

PORT = "/dev/virtio-ports/metal.door"
EVENTS = "/dev/virtio-ports/metal.events"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C",
    "TERM": "dumb",
    "TZ": "UTC",
    "PYTHONPATH": "/opt/quorate/site",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}


class Door:
    """The port, and the commands that run."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.lock = threading.Lock()
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def tell(self, message: "dict[str, object]") -> None:
        data = (json.dumps(message) + "\n").encode()
        with self.lock:
            while data:
                data = data[os.write(self.port, data) :]

    def hear(self, line: bytes) -> None:
        message = json.loads(line)
        number = message["id"]
        if "run" in message:
            threading.Thread(target=self.run, args=(number, message["run"]), daemon=True).start()
        elif "kill" in message:
            process = self.running.get(number)
            if process is not None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        elif "file" in message:
            threading.Thread(target=self.write, args=(number, message["file"], message["data"]), daemon=True).start()

    def run(self, number: int, text: str) -> None:
        process = subprocess.Popen(
            ["/bin/sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        self.running[number] = process
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), 65536):
            self.tell({"id": number, "out": piece.decode(errors="replace")})
        self.tell({"id": number, "exit": process.wait(), "time": time.time()})
        self.running.pop(number, None)

    def write(self, number: int, path: str, data: str) -> None:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".new", "wb") as file:
                file.write(base64.b64decode(data))
                file.flush()
                os.fsync(file.fileno())
            os.rename(path + ".new", path)
            self.tell({"id": number, "exit": 0})
        except OSError as error:
            self.tell({"id": number, "out": str(error), "exit": 1})


def main() -> None:
    while not os.path.exists(PORT):
        time.sleep(0.1)
    port = os.open(PORT, os.O_RDWR)
    door = Door(port)
    door.tell({"id": 0, "out": open("/proc/sys/kernel/random/boot_id").read().strip(), "exit": 0})
    rest = b""
    while True:
        piece = os.read(port, 65536)
        if not piece:
            time.sleep(0.05)
            continue
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line:
                door.hear(line)


main()
