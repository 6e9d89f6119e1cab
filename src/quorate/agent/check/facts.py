"""What there is on this machine: looked at, not judged. Nothing is changed, save a probe file that is removed again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from quorate.agent.crypto import parse_crypto
from quorate.agent.lvm.filtering import lvm
from quorate.agent.machine import CommandHung, CommandNotFound, Completed, Machine
from quorate.agent.settings import Settings
from quorate.api.cluster_config import DrbdSettings

#: Commands that say that they are there, and do nothing else. Not ``drbdsetup --version``: that loads the module.
PROBES: Mapping[str, tuple[str, ...]] = {
    "drbdadm": ("drbdadm", "--version"),
    "drbdsetup": ("drbdsetup", "help"),
    "drbdmeta": ("drbdmeta",),
    "lvm": ("lvm", "version"),
    "dmsetup": ("dmsetup", "--version"),
    "blkdiscard": ("blkdiscard", "--version"),
    "lsblk": ("lsblk", "--version"),
    "smartctl": ("smartctl", "--version"),
    "ledctl": ("ledctl", "--version"),
}

_PROBE_FILE = ".quorate-check"
#: The module that carries DRBD's links. The first link of a machine loads it, and has five seconds for that (F2).
TRANSPORT = "drbd_transport_tcp"


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen. None: it could not be seen, or is not there."""

    node_name: str = ""
    #: Why no command at all can be run, a prefix that does not work say; "" when they can.
    command_problem: str = ""
    user_id: int | None = None
    kernel_release: str = ""
    #: By command, what it said; None: it cannot be run.
    commands: Mapping[str, str | None] = field(default_factory=dict)
    #: The version of the DRBD module that is loaded, and of the one that could be.
    module_loaded: str | None = None
    module_on_disk: str | None = None
    #: Whether the module that carries DRBD's links is loaded, and whether it could be.
    transport_loaded: bool = False
    transport_on_disk: bool = False
    #: The setting of the loaded module, and what ``/etc/modprobe.d`` sets for the next one.
    usermode_helper: str | None = None
    usermode_helper_at_load: str | None = None
    #: What systemd says of drbd.service, "enabled" say; None: there is no systemd.
    drbd_service: str | None = None
    #: Algorithms that the kernel has, and those that it could load.
    hashes: frozenset[str] = frozenset()
    loadable_hashes: frozenset[str] = frozenset()
    #: Which devices the host's own LVM commands leave out, and whether they look only at those of a list.
    lvm_filter: str | None = None
    lvm_has_list: bool = False
    volume_groups: tuple[str, ...] | None = None
    config_directory: str = ""
    #: Why nothing can be written there; "" when it can.
    config_problem: str = ""
    state_directory: str = ""
    #: The type of its file system; None: there is no such directory.
    state_filesystem: str | None = None
    #: Addresses that the node's name, or its Node object, stands for; and those of them that are this machine's.
    addresses: tuple[str, ...] = ()
    own_addresses: tuple[str, ...] = ()
    ports: range = range(0)
    free_ports: int = 0
    #: From where the kernel takes ports for whoever connects to somewhere, and which it leaves out; None: not known.
    local_ports: range | None = None
    reserved_ports: frozenset[int] = frozenset()
    #: The process that holds the agent's lock here; "" when none does.
    lock_holder: str = ""


async def gather(
    machine: Machine,
    *,
    node_name: str,
    settings: Settings,
    drbd: DrbdSettings | None = None,
    internal_addresses: tuple[str, ...] = (),
    lock_holder: str = "",
) -> Facts:
    """Look at everything. ``internal_addresses`` are those of the Node object, if there is one."""
    look = _Look(machine)
    await look.try_commands()
    ports = drbd or DrbdSettings()
    addresses = internal_addresses or await look.resolved(node_name)
    own = tuple([address for address in addresses if await machine.port_is_free(address, 0)])
    port_range = range(ports.min_port, ports.max_port + 1)
    free = [port for port in port_range if own and await machine.port_is_free(own[0], port)]
    return Facts(
        node_name=node_name,
        command_problem=look.command_problem,
        user_id=await look.number("id", "-u"),
        kernel_release=await look.word("uname", "-r") or "",
        commands={name: await look.said(*argv) for name, argv in PROBES.items()},
        module_loaded=await look.module_version(settings),
        module_on_disk=await look.word("modinfo", "-F", "version", "drbd"),
        transport_loaded=await look.text(f"{settings.sys}/module/{TRANSPORT}/initstate") == "live",
        transport_on_disk=await look.succeeds("modprobe", "-n", "-q", TRANSPORT),
        usermode_helper=await look.text(f"{settings.sys}/module/drbd/parameters/usermode_helper"),
        usermode_helper_at_load=await look.module_option("drbd", "usermode_helper"),
        drbd_service=await look.service("drbd.service"),
        hashes=parse_crypto(await look.text(f"{settings.proc}/crypto") or ""),
        loadable_hashes=frozenset(
            [name for name in ("sha1", "sha256") if await look.succeeds("modprobe", "-n", "-q", f"crypto-{name}")]
        ),
        lvm_filter=await look.word("lvmconfig", "devices/global_filter"),
        lvm_has_list=await look.word("lvmconfig", "devices/use_devicesfile") == "use_devicesfile=1",
        volume_groups=await look.volume_groups(),
        config_directory=settings.config_directory,
        config_problem=await look.writing_problem(settings.config_directory),
        state_directory=settings.drbd_state_directory,
        state_filesystem=await look.word("stat", "-f", "-c", "%T", settings.drbd_state_directory),
        addresses=addresses,
        own_addresses=own,
        ports=port_range,
        free_ports=len(free),
        local_ports=parse_port_range(await look.text(f"{settings.proc}/sys/net/ipv4/ip_local_port_range") or ""),
        reserved_ports=parse_ports(await look.text(f"{settings.proc}/sys/net/ipv4/ip_local_reserved_ports") or ""),
        lock_holder=lock_holder,
    )


def parse_port_range(text: str) -> range | None:
    """Two numbers, "32768 60999"; None: it says something else."""
    words = text.split()
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        return None
    return range(int(words[0]), int(words[1]) + 1)


def parse_ports(text: str) -> frozenset[int]:
    """What the kernel keeps back, "7000-7999,8080"."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isascii() and first.isdigit() and (not last or (last.isascii() and last.isdigit())):
            found.update(range(int(first), min(int(last or first), 65535) + 1))
    return frozenset(found)


def parse_module_option(text: str, module: str, option: str) -> str | None:
    """What a file of ``/etc/modprobe.d`` sets an option to; the last line that does wins."""
    value = None
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words[:2] == ["options", module]:
            for word in words[2:]:
                name, _, given = word.partition("=")
                value = given if name == option else value
    return value


class _Look:
    """Looks that fail are answers too."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.command_problem = ""

    async def try_commands(self) -> None:
        """Run one that does nothing. Where it fails, the prefix does, and what others say is not theirs."""
        try:
            done = await self._machine.run("true", silence=10.0)
        except (CommandNotFound, CommandHung) as error:
            self.command_problem = str(error)
            return
        if done.exit_code != 0:
            self.command_problem = done.output or f"exit code {done.exit_code}"

    async def run(self, *argv: str) -> Completed | None:
        """What became of a command; None when it cannot be run, or does not end."""
        if self.command_problem:
            return None
        try:
            return await self._machine.run(*argv, silence=10.0)
        except (CommandNotFound, CommandHung):
            return None

    async def said(self, *argv: str) -> str | None:
        """Everything that a command said, however it ended."""
        done = await self.run(*argv)
        return done.output if done is not None else None

    async def succeeds(self, *argv: str) -> bool:
        done = await self.run(*argv)
        return done is not None and done.exit_code == 0

    async def word(self, *argv: str) -> str | None:
        """What a command said, if it succeeded and said anything."""
        done = await self.run(*argv)
        return (done.stdout.strip() or None) if done is not None and done.exit_code == 0 else None

    async def number(self, *argv: str) -> int | None:
        found = await self.word(*argv)
        return int(found) if found is not None and found.isdigit() else None

    async def text(self, path: str) -> str | None:
        try:
            return (await self._machine.read_file(path)).decode(errors="replace").strip()
        except OSError:
            return None

    async def module_version(self, settings: Settings) -> str | None:
        version = await self.text(f"{settings.sys}/module/drbd/version")
        if version:
            return version
        first = (await self.text(f"{settings.proc}/drbd") or "").split()
        return first[1] if first[:1] == ["version:"] and len(first) > 1 else None

    async def module_option(self, module: str, option: str) -> str | None:
        value = None
        for directory in ("/usr/lib/modprobe.d", "/lib/modprobe.d", "/etc/modprobe.d"):
            try:
                names = await self._machine.list_directory(directory)
            except OSError:
                continue
            for name in names:
                if name.endswith(".conf"):
                    found = parse_module_option(await self.text(f"{directory}/{name}") or "", module, option)
                    value = found if found is not None else value
        return value

    async def service(self, unit: str) -> str | None:
        if await self.word("systemctl", "show", "-p", "Version", "--value") is None:
            return None
        enabled = await self.run("systemctl", "is-enabled", unit)
        active = await self.run("systemctl", "is-active", unit)
        states = [done.stdout.strip() for done in (enabled, active) if done is not None]
        return ", ".join(dict.fromkeys(state for state in states if state)) or "not there"

    async def volume_groups(self) -> tuple[str, ...] | None:
        done = await self.run(*lvm("vgs", "--reportformat", "json", "-o", "vg_name"))
        if done is None or done.exit_code != 0:
            return None
        try:
            report = json.loads(done.stdout)
            return tuple(row["vg_name"] for part in report["report"] for row in part["vg"])
        except (ValueError, KeyError, TypeError):
            return None

    async def writing_problem(self, directory: str) -> str:
        path = f"{directory}/{_PROBE_FILE}"
        try:
            await self._machine.write_file(path, b"")
            await self._machine.remove_file(path)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    async def resolved(self, name: str) -> tuple[str, ...]:
        found = await self.word("getent", "ahostsv4", name)
        lines = [line.split() for line in (found or "").splitlines()]
        return tuple(dict.fromkeys(words[0] for words in lines if words))
