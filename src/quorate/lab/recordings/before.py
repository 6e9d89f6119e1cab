"""What a recording does not say but shows: how large and how used the disks were, and files that went without a step.

The recorded machines had been used: ``lvcreate`` wipes a DRBD signature, or ``dump-md`` finds metadata where nobody has
created any. So there was a volume of the same size on the same extents, with metadata; the lab makes one and removes
it, by the same commands. And when drbdadm says "no resources defined!" the files are gone, though no step removed
them: the recorder's own cleaning up is not among the steps. And when LVM says how much space is left, it was so much.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec import structs

from quorate.lab.host import Host
from quorate.lab.lvm.volume import EXTENT
from quorate.lab.recordings.recording import AnyStep, Command, File, Recording

_CREATE = re.compile(r"\blvcreate\b.*?-L\s*(?P<size>\S+)\s+(?P<group>\S+)")
_NODE_ID = re.compile(r"^node-id (\d+);", re.MULTILINE)
_NO_SPACE = re.compile(r'Volume group "(?P<group>\S+)" has insufficient free space \((?P<free>\d+) extents\)')
_NOTHING_CONFIGURED = "no resources defined!"
_MINOR = 999
_WHOLE_DRIVE = re.compile(r"/dev/(vd[b-z])\b")
_DRIVE_SIZE = "32M"  # as the recorded machines had them

_CONFIGURATION = """resource "previous" {{
  on {host} {{
    node-id {node_id};
    address ipv4 {address}:7999;
    volume 0 {{ device minor {minor}; disk /dev/{group}/previous; meta-disk internal; }}
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A volume that was there before, and had been in use by DRBD."""

    size: str
    group: str
    node_id: int


def on_volumes(recording: Recording) -> Recording:
    """The same with a logical volume in place of every whole drive that it gives to DRBD: /dev/vdb is /dev/vg0/vdb."""
    if not drives(recording):
        return recording
    return structs.replace(recording, steps=[_on_volumes(step) for step in recording.steps])


def drives(recording: Recording) -> dict[str, set[str]]:
    """The whole drives that DRBD is given, by node."""
    found: dict[str, set[str]] = {}
    for step in recording.steps:
        if isinstance(step, File):
            found.setdefault(step.node, set()).update(_WHOLE_DRIVE.findall(step.text))
    return {node: names for node, names in found.items() if names}


def _on_volumes(step: AnyStep) -> AnyStep:
    if isinstance(step, File):
        return structs.replace(step, text=_WHOLE_DRIVE.sub(r"/dev/vg0/\1", step.text))
    if isinstance(step, Command):
        command, output = (_WHOLE_DRIVE.sub(r"/dev/vg0/\1", text) for text in (step.command, step.output))
        return structs.replace(step, command=command, output=output)
    return step


def make_volumes(host: Host, recording: Recording, names: set[str]) -> None:
    """Volumes for the whole drives, with metadata on those where the recording finds some that it does not expect."""
    shown = "".join(step.output for step in recording.steps if isinstance(step, Command) and step.node == host.name)
    for name in sorted(names):
        host.execute(["lvcreate", "-y", "-n", name, "-L", _DRIVE_SIZE, "vg0"])
        if f"already in place on /dev/{name} " in shown:
            host.execute(["drbdmeta", str(_MINOR), "v09", f"/dev/vg0/{name}", "internal", "create-md", "7", "--force"])


def tenants(recording: Recording) -> dict[str, Tenant]:
    """The previous tenants that the recording shows, by node."""
    found: dict[str, Tenant] = {}
    created: dict[str, re.Match[str]] = {}
    done: set[str] = set()
    for step in recording.steps:
        if not isinstance(step, Command) or step.node in done:
            continue
        if step.node not in created:
            if match := _CREATE.search(step.command):
                created[step.node] = match
                if "Wiping drbd signature" in step.output:
                    found[step.node] = Tenant(match["size"], match["group"], 0)
                    done.add(step.node)
        elif "dump-md" in step.command and "No valid meta data found" not in step.output:
            node_id = _NODE_ID.search(step.output)
            match = created[step.node]
            found[step.node] = Tenant(match["size"], match["group"], int(node_id[1]) if node_id else 0)
            done.add(step.node)
        elif "create-md" in step.command or "dump-md" in step.command:
            done.add(step.node)
    return found


def settle(host: Host, tenant: Tenant) -> None:
    """Let a tenant have been there."""
    path = "/etc/drbd.d/previous.res"
    host.files[path] = _CONFIGURATION.format(
        host=host.name, node_id=tenant.node_id, address=host.addresses[0], minor=_MINOR, group=tenant.group
    ).encode()
    for words in (
        ["lvcreate", "-y", "-W", "n", "-n", "previous", "-L", tenant.size, tenant.group],
        ["drbdadm", "create-md", "--max-peers=7", "--force", "previous"],
        ["drbdadm", "up", "previous"],
        ["drbdadm", "down", "previous"],
        ["lvremove", "-y", f"{tenant.group}/previous"],
    ):
        host.execute(words)
    for name in [name for name in host.files if "previous" in name or name.endswith(f"-{_MINOR}.lkbd")]:
        del host.files[name]


def limit_space(host: Host, step: Command) -> None:
    """Let a volume group have the free space that the recording shows it to have had, by a drive of that size."""
    match = _NO_SPACE.search(step.output)
    group = host.lvm.groups.get(match["group"]) if match else None
    if match and group and len(group.members) == 1:
        group.members[0].drive.size += (int(match["free"]) - group.free_extents) * EXTENT


def clean_up(host: Host, step: Command) -> None:
    """Remove the configuration where the recording shows that it is gone, and nothing is configured any more."""
    if _NOTHING_CONFIGURED in step.output and not host.kernel.resources():
        for name in [name for name in host.files if name.startswith("/etc/drbd.d/") and name.endswith(".res")]:
            del host.files[name]
