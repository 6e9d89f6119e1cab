"""Machines under qemu as scenarios see them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from metal.errors import Failed
from metal.journal import Journal
from metal.lab import MEDIA, drive_serial
from metal.machines import DRIVE, Machines, Running, Said, Writer, Written
from metal.qemu.hub import Hub
from metal.qemu.image import System
from metal.qemu.server import Server
from metal.qemu.vm import Heard, Vm, accelerator
from quorate.api.cluster_config import ClusterConfig
from quorate.api.names import CLUSTER
from quorate.engine.store import Store
from quorate.errors import ApiError
from quorate.lab.drives import Medium

_MEMORY = 512
_BOOT = 60.0
_KUBECONFIG = "/etc/quorate/kubeconfig"

_AGENT_UNIT = """[Unit]
Description=Quorate node agent, overheard by make metal
After=network.target
StartLimitIntervalSec=0
[Service]
Environment=PYTHONPATH=/opt/quorate/site PYTHONDONTWRITEBYTECODE=1
ExecStart=/bin/sh -c 'exec /usr/bin/python3 /opt/quorate/guest/agent.py agent --node-name {node} \
  --kubeconfig {kubeconfig} \
  --register-node --zone {zone} --address {address} --metrics-listen 127.0.0.1 --log-format json \
  >>/dev/virtio-ports/metal.agent 2>&1'
Restart=always
RestartSec=1
KillMode=process
[Install]
WantedBy=multi-user.target
"""

_PROGRAM = """#!/bin/sh
export PYTHONPATH=/opt/quorate/site PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 -m quorate "$@"
"""

#: The program is on a file system that must not go before it has run.
_SHUTDOWN_DROP_IN = """[Unit]
RequiresMountsFor=/opt/quorate
"""


def slowness(system: System) -> float:
    """How much longer than on hardware everything may take here."""
    given = os.environ.get("QUORATE_METAL_PATIENCE", "")
    if given:
        return float(given)
    return 2.0 if accelerator(system) == "kvm" else 6.0


class _Command(Running):
    def __init__(self, vm: Vm, number: int, heard: Heard) -> None:
        self._vm = vm
        self._number = number
        self._heard = heard

    async def wait(self, seconds: float) -> Said:
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._heard.ended), seconds)
        exit_code = self._heard.ended.result() if self._heard.ended.done() else None
        return Said(exit_code, "".join(self._heard.said))

    async def kill(self) -> None:
        self._vm.kill(self._number)


class _NeverBegan(Running):
    def __init__(self, why: str) -> None:
        self._why = why

    async def wait(self, seconds: float) -> Said:
        return Said(137, self._why)

    async def kill(self) -> None:
        return None


class QemuMachines(Machines):
    """Virtual machines of this host, on one hub."""

    kind = "qemu"

    def __init__(
        self, system: System, journal: Journal, sockets: Path, *, nodes: int, drives: int, agents: bool, drbd: bool
    ) -> None:
        names = [f"n{number}" for number in range(1, nodes + 1)]
        super().__init__(names, journal)
        self.patience = slowness(system)
        self._began = time.monotonic()
        self._wall = time.time()
        self._drbd = drbd
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._hub = Hub(sockets, self._numbers.values())
        self._vms = {
            name: Vm(name, number, journal.directory / name, system, self._hub, memory=_MEMORY)
            for name, number in self._numbers.items()
        }
        self._server = Server(journal.directory) if agents else None
        #: Seconds by which a machine's clock is ahead of ours.
        self._ahead: dict[str, float] = {}
        self._listening: list[asyncio.Task[None]] = []
        for name, vm in self._vms.items():
            for slot in range(1, drives + 1):
                vm.add_disk(drive_serial(name, slot), DRIVE, nvme=_is_nvme(slot))

    async def open(self) -> None:
        """Boot everything."""
        self._hub.open()
        if self._server is not None:
            await self._server.start(60 * self.patience)
            if self.patience > 2.0:
                await self._be_patient()
        await asyncio.gather(*(self._boot(node) for node in self.nodes))
        if self._server is not None:
            await asyncio.gather(*(self._install_agent(node) for node in self.nodes))
        self._listening = [asyncio.create_task(self._overhear(node)) for node in self.nodes]

    async def _be_patient(self) -> None:
        """Emulated machines are ten to sixty times slower than hardware: commands and leases must know."""
        patch = {"spec": {"timeouts": {"command": "90s"}, "agent": {"leaseDuration": "60s"}}}
        for _ in range(100):
            try:
                await self.store.patch(ClusterConfig, CLUSTER, patch=patch)
                return
            except ApiError:
                await asyncio.sleep(0.2)

    @property
    def store(self) -> Store:
        assert self._server is not None, "this scenario has no agents"
        return self._server.store

    def now(self) -> float:
        return time.monotonic() - self._began

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # --- booting ---

    async def _boot(self, node: str) -> None:
        vm = self._vms[node]
        began = self.now()
        await vm.power_on(_BOOT * self.patience)
        self.journal.tell(self.now(), node, f"booted in {self.now() - began:.1f} s")
        number = self._numbers[node]
        ready = (
            "set -e; modprobe virtio_net; udevadm settle -t 30 || true;"
            "ip link set lo up; ip addr replace 10.0.2.15/24 dev eth0; ip link set eth0 up;"
            f"ip addr replace 10.77.0.{number}/24 dev eth1; ip link set eth1 mtu 1500 up;"
            "mkdir -p /etc/drbd.d /var/lib/drbd /var/lib/metal /etc/quorate;"
            "printf 'global { usage-count no; }\\n' > /etc/drbd.d/global_common.conf;"
            "cut -d' ' -f1 /proc/uptime"
        )
        await self._ask(node, ready)
        await self._measure(node)
        if self._drbd:
            modules = (
                "set -e; v=$(uname -r); if ! [ -e /lib/modules/$v/updates/drbd.ko ]; then"
                " mkdir -p /lib/modules/$v/updates; cp /opt/quorate/modules/*.ko /lib/modules/$v/updates/;"
                " depmod -a; fi"
            )
            await self._ask(node, modules, 120)
            # Not for agents: they load what they need, and --check says what is missing.
            if self._server is None:
                await self._ask(node, "modprobe drbd && modprobe drbd_transport_tcp", 120)
                vm.start("drbdsetup events2 --timestamps --full > /dev/virtio-ports/metal.events 2>&1")

    async def _measure(self, node: str) -> None:
        """By how much a machine's clock is ahead of ours."""
        before = time.time()
        there = float(await self._ask(node, "date +%s.%N"))
        after = time.time()
        self._ahead[node] = there - (before + after) / 2
        self.journal.tell(self.now(), node, f"its clock is {self._ahead[node]:+.3f} s, to {(after - before) / 2:.3f} s")

    def _own(self, node: str, moment: float) -> float:
        """A machine's moment in our time."""
        return moment - self._ahead.get(node, 0.0) - self._wall

    async def _install_agent(self, node: str) -> None:
        assert self._server is not None
        number = self._numbers[node]
        vm = self._vms[node]
        await vm.write_file(_KUBECONFIG, (await self._server.agent_kubeconfig(node)).encode())
        unit = _AGENT_UNIT.format(
            node=node,
            kubeconfig=_KUBECONFIG,
            zone=f"zone-{chr(ord('a') + (number - 1) % 3)}",
            address=f"10.77.0.{number}",
        )
        await vm.write_file("/etc/systemd/system/quorate-agent.service", unit.encode())
        # Where volumes are made, what `agent --check` tells a person to do is done; "check" shows that it tells.
        mended = MENDED if self._drbd else "true"
        await vm.write_file("/usr/bin/quorate", _PROGRAM.encode())
        await vm.write_file("/etc/systemd/system/quorate-shutdown.service.d/metal.conf", _SHUTDOWN_DROP_IN.encode())
        units = (
            "chmod 755 /usr/bin/quorate && cp /opt/quorate/deploy/systemd/quorate-shutdown.service /etc/systemd/system/"
            " && systemctl daemon-reload && systemctl enable -q quorate-agent quorate-shutdown"
            " && systemctl start --no-block quorate-shutdown"
        )
        await self._ask(node, f"{mended}; {units}", 60)
        await self.start_agent(node)

    async def stop_agent(self, node: str) -> None:
        self.journal.tell(self.now(), node, "the agent is stopped")
        await self._ask(node, "systemctl stop quorate-agent", 60)

    async def start_agent(self, node: str) -> None:
        await self._ask(node, "systemctl start --no-block quorate-agent", 60)
        if self._drbd:
            # The module comes with the agent; events are listened to as soon as it is there.
            self._vms[node].start(
                "while ! [ -e /sys/module/drbd ]; do sleep 1; done;"
                "drbdsetup events2 --timestamps --full > /dev/virtio-ports/metal.events 2>&1"
            )

    async def _ask(self, node: str, text: str, seconds: float = 60.0) -> str:
        said = await self._start(node, text).wait(seconds * self.patience)
        if said.exit != 0:
            raise Failed(f"{node}: {text}: exit {said.exit}\n{said.output}")
        return said.output

    # --- what scenarios do ---

    def _start(self, node: str, command: str) -> Running:
        vm = self._vms[node]
        if not vm.powered:
            return _NeverBegan(f"{node} has no power")
        return _Command(vm, *vm.start(command))

    async def _write_file(self, node: str, path: str, data: bytes) -> None:
        await self._vms[node].write_file(path, data)

    async def _set_ways(self, ways: Iterable[tuple[str, str]], *, up: bool) -> None:
        numbered = {(self._numbers[one], self._numbers[other]) for one, other in ways}
        (self._hub.cut.difference_update if up else self._hub.cut.update)(numbered)

    async def _power(self, node: str, *, on: bool) -> None:
        if on:
            await self._boot(node)
            if self._server is not None:
                await self.start_agent(node)
        else:
            await self._vms[node].power_off()

    async def _ends(self, node: str, seconds: float) -> bool:
        return await self._vms[node].until_ended(seconds)

    async def _shut_down(self, node: str) -> None:
        await self._ask(node, "systemctl --no-block poweroff")

    async def kill_agent(self, node: str) -> None:
        self.journal.tell(self.now(), node, "the agent is killed")
        await self._ask(node, "systemctl kill -s KILL quorate-agent")

    async def kill_agents_at_commands(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            await self._ask(node, "touch /var/lib/metal/kill-at-commands")

    async def deaths(self, node: str) -> list[str]:
        said = await self._ask(node, "cat /var/lib/metal/died.json 2>/dev/null || echo '[]'")
        found: list[str] = json.loads(said)
        return found

    async def _read_blocks(self, node: str, device: str, blocks: Iterable[int]) -> list[str]:
        numbers = " ".join(map(str, blocks))
        said = await self._ask(node, f"python3 /opt/quorate/guest/blocks.py {shlex.quote(device)} {numbers}", 30)
        return said.split()

    async def _start_writer(self, node: str, device: str, tag: str, *, first: int, pause: float, sync: bool) -> Writer:
        writer = Writer(node, device, tag)
        kind = "dsync" if sync else "plain"
        rest = [""]

        def hear(said: str) -> None:
            *lines, rest[0] = (rest[0] + said).split("\n")
            for line in lines:
                self._heard_writer(writer, line)

        command = f"exec python3 /opt/quorate/guest/writer.py {shlex.quote(device)} {tag} {first} {pause} {kind}"
        self.journal.tell(self.now(), node, f"writer: {command}")
        await self._measure(node)
        vm = self._vms[node]
        number, _ = vm.start(command, hear)

        async def stop() -> None:
            vm.kill(number)
            await asyncio.sleep(0.2)

        writer.stop = stop
        return writer

    def _heard_writer(self, writer: Writer, line: str) -> None:
        words = line.split()
        match words:
            case ["begin", block, moment]:
                at = self._own(writer.node, float(moment))
                writer.writes.append(Written(int(block), at, at, ""))
            case ["end", block, moment, result]:
                last = writer.writes[-1]
                writer.writes[-1] = Written(int(block), last.began, self._own(writer.node, float(moment)), result)
            case _:
                self.journal.tell(self.now(), writer.node, f"writer: {line}")

    def drives(self, node: str) -> tuple[str, ...]:
        return tuple(sorted(self._vms[node].disks))

    async def pull(self, node: str, serial: str) -> None:
        self.journal.tell(self.now(), node, f"drive {serial} is pulled out")
        await self._vms[node].pull(serial)

    async def plug(self, node: str, serial: str) -> None:
        self.journal.tell(self.now(), node, f"drive {serial} is put in")
        await self._vms[node].plug(serial, DRIVE, nvme=_is_nvme(int(serial.split("-")[2])))

    async def kernel_lines(self, node: str) -> list[str]:
        path = self.journal.directory / node / "console.log"
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    # --- what agents do ---

    async def _overhear(self, node: str) -> None:
        """Tell and record what a node's agent does, as it comes in."""
        path = self.journal.directory / node / "commands.log"
        place = 0
        while True:
            if path.exists() and path.stat().st_size > place:
                with path.open("rb") as file:
                    file.seek(place)
                    for line in file:
                        if not line.endswith(b"\n"):
                            break
                        place += len(line)
                        self._overheard(node, line)
            await asyncio.sleep(0.2)

    def _overheard(self, node: str, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        at = max(0.0, self._own(node, told.get("time", 0.0)))
        if "command" in told and told["exit"] is not None:
            self.journal.command(at, node, told["command"], told["exit"], told["output"], by="agent")
        elif "command" in told:
            self.journal.tell(at, node, f"{told['command']}: {told['output']} (agent)")
        elif "file" in told:
            self.journal.file(at, node, told["file"], told["text"])
        elif "died" in told:
            self.journal.tell(at, node, f"the agent dies {told['died']}")

    async def close(self) -> None:
        await asyncio.sleep(0.5)
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)
        for vm in self._vms.values():
            path = vm.directory / "events.log"
            if self._drbd and vm.boots == 1 and path.exists():
                self.journal.events(self.now(), vm.name, path.read_text(errors="replace"))
            await vm.power_off()
            for image in (*vm.directory.glob("*.img"), *vm.directory.glob("*.qcow2")):
                image.unlink()
        if self._server is not None:
            await self._server.close()
        self._hub.close()


#: What ``agent --check`` tells a person to do on a plain Debian.
MENDED = (
    "echo options drbd usermode_helper=disabled > /etc/modprobe.d/quorate-drbd.conf;"
    """ echo 'devices { global_filter = [ "r|^/dev/drbd.*|" ] }' > /etc/lvm/lvmlocal.conf"""
)


def _is_nvme(slot: int) -> bool:
    return MEDIA[(slot - 1) % 2] is Medium.NVME


@asynccontextmanager
async def qemu_machines(
    system: System, journal: Journal, *, nodes: int, drives: int, agents: bool, drbd: bool
) -> AsyncIterator[QemuMachines]:
    """Booted machines, with agents and a server if they are asked for; nothing is left running after the block."""
    sockets = Path(tempfile.mkdtemp(prefix="metal-"))  # not beside the logs: the path of a socket must be short
    made = QemuMachines(system, journal, sockets, nodes=nodes, drives=drives, agents=agents, drbd=drbd)
    try:
        await made.open()
        yield made
    finally:
        await made.close()
        shutil.rmtree(sockets, ignore_errors=True)
