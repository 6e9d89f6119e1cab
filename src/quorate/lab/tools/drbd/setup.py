"""``drbdsetup``: one kernel call per command, and the commands that print."""

from __future__ import annotations

from collections.abc import Callable

from quorate.lab.kernel import Kernel, Reply
from quorate.lab.kernel import metadata as kernel_metadata
from quorate.lab.kernel.reply import Code
from quorate.lab.tools.arguments import Arguments, UsageError
from quorate.lab.tools.conf import options
from quorate.lab.tools.drbd import answer, last_known, show, status_json, status_text
from quorate.lab.tools.drbd.events import events2
from quorate.lab.tools.process import Process, Program

_USAGE = 20
_NO_SUCH = 10
_SHORT = {"-j": "json", "-v": "verbose", "-s": "statistics", "-f": "force", "-c": "color"}

_Call = Callable[[Process, Arguments], int]


def drbdsetup(process: Process, argv: list[str]) -> Program | int:
    """The command line."""
    if len(argv) < 2:
        process.err("USAGE: drbdsetup command {arguments} [options]\n")
        return _USAGE
    try:
        arguments = _read(argv[2:])
        if argv[1] == "events2":
            return events2(process, arguments)
        return run(process, argv[1], arguments)
    except (UsageError, ValueError, IndexError) as error:
        process.err(f"drbdsetup {argv[1]}: bad arguments: {error}\n")
        return _USAGE


def run(process: Process, command: str, arguments: Arguments) -> int:
    """A command that ends at once."""
    if command in _PRINTING:
        return _PRINTING[command](process, arguments)
    if command not in _CALLS:
        raise UsageError(f"unknown command {command}")
    reply = _CALLS[command](process, process.host.kernel, arguments)
    return answer.tell(process, arguments.rest[0], reply)


def _read(words: list[str]) -> Arguments:
    """Options anywhere, ``--name=value`` or ``--name value``; a flag may have a value too."""
    found, stream = Arguments(), iter(words)
    for word in stream:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            if not equals:
                value = next(stream, "") if options.takes_value(name) else "yes"
            found.options.setdefault(name, []).append(value)
        elif word in _SHORT:
            found.options.setdefault(_SHORT[word], []).append("yes")
        else:
            found.rest.append(word)
    return found


def _settings(arguments: Arguments) -> dict[str, str]:
    return {name: values[-1] for name, values in arguments.options.items() if name in options.ALL}


# --- kernel calls ---


def _new_minor(_process: Process, kernel: Kernel, arguments: Arguments) -> Reply:
    name, minor, volume = arguments.rest
    return kernel.new_minor(name, int(minor), int(volume), diskless=arguments.has("diskless"))


def _attach(process: Process, kernel: Kernel, arguments: Arguments) -> Reply:
    minor, path = int(arguments.rest[0]), arguments.rest[1]
    device = process.host.block_device(path)
    if device is None:
        return Reply(Code.CANNOT_OPEN_DISK)
    reply = kernel.attach(minor, device, path, _settings(arguments))
    found = kernel_metadata.find(device)
    if reply.ok and found is not None:
        last_known.save(process.host.files, minor, device.size, path, found.device_uuid)
    return reply


def _resize(_process: Process, kernel: Kernel, arguments: Arguments) -> Reply:
    minor = int(arguments.rest[0])
    size = options.DISK["size"].number(arguments.get("size")) if arguments.get("size") else None
    return kernel.resize(minor, size * 512 if size is not None else None, assume_clean=arguments.has("assume-clean"))


def _check_resize(process: Process, arguments: Arguments) -> int:
    """Note where the metadata of an attached device is: what finds it again if the device grows while it is down."""
    minor = int(arguments.rest[0])
    path = show.backing_path(process.host.kernel, minor)
    device = process.host.block_device(path) if path else None
    found = kernel_metadata.find(device) if device else None
    if path and device and found:
        last_known.save(process.host.files, minor, device.size, path, found.device_uuid)
    return 0


def _offset(arguments: Arguments, name: str) -> int | None:
    """A place on a device, in bytes; given in sectors unless with a unit."""
    if not arguments.has(name):
        return None
    sectors = options.DISK["size"].number(arguments.get(name))
    if sectors is None:
        raise UsageError(f"--{name}={arguments.get(name)} is no number of sectors")
    return sectors * 512


def _down(_process: Process, kernel: Kernel, arguments: Arguments) -> Reply:
    """One that is not there is down. ``all`` is every resource, whatever is called so; the first that stays is told."""
    name = arguments.rest[0]
    names = [each["name"] for each in kernel.status()] if name == "all" else [name]
    replies = [reply for each in names if (reply := kernel.down(each)).code != Code.UNKNOWN_RESOURCE]
    return next((reply for reply in replies if not reply.ok), Reply())


_KernelCall = Callable[[Process, Kernel, Arguments], Reply]


def _named(call: Callable[[Kernel, str, Arguments], Reply]) -> _KernelCall:
    return lambda _process, kernel, arguments: call(kernel, arguments.rest[0], arguments)


def _on_peer(call: Callable[[Kernel, str, int, Arguments], Reply]) -> _KernelCall:
    return lambda _process, kernel, arguments: call(kernel, arguments.rest[0], int(arguments.rest[1]), arguments)


def _on_minor(call: Callable[[Kernel, int, Arguments], Reply]) -> _KernelCall:
    return lambda _process, kernel, arguments: call(kernel, int(arguments.rest[0]), arguments)


def _on_peer_device(call: Callable[[Kernel, str, int, int, Arguments], Reply]) -> _KernelCall:
    return lambda _process, kernel, arguments: call(
        kernel, arguments.rest[0], int(arguments.rest[1]), int(arguments.rest[2]), arguments
    )


_CALLS: dict[str, _KernelCall] = {
    "new-resource": _named(lambda k, name, a: k.new_resource(name, int(a.rest[1]), _settings(a))),
    "resource-options": _named(
        lambda k, name, a: k.resource_options(name, _settings(a), set_defaults=a.has("set-defaults"))
    ),
    "new-minor": _new_minor,
    "new-peer": _on_peer(lambda k, name, peer, a: k.new_peer(name, peer, _settings(a))),
    "net-options": _on_peer(
        lambda k, name, peer, a: k.net_options(name, peer, _settings(a), set_defaults=a.has("set-defaults"))
    ),
    "peer-device-options": _on_peer_device(
        lambda k, name, peer, volume, a: k.peer_device_options(
            name, peer, volume, _settings(a), set_defaults=a.has("set-defaults")
        )
    ),
    "new-path": _on_peer(lambda k, name, peer, a: k.new_path(name, peer, a.rest[2], a.rest[3])),
    "del-path": _on_peer(lambda k, name, peer, a: k.del_path(name, peer, a.rest[2], a.rest[3])),
    "del-peer": _on_peer(lambda k, name, peer, _a: k.del_peer(name, peer)),
    "forget-peer": _on_peer(lambda k, name, peer, _a: k.forget_peer(name, peer)),
    "connect": _on_peer(lambda k, name, peer, a: k.connect(name, peer, discard_my_data=a.has("discard-my-data"))),
    "disconnect": _on_peer(lambda k, name, peer, a: k.disconnect(name, peer, force=a.has("force"))),
    "del-minor": _on_minor(lambda k, minor, _a: k.del_minor(minor)),
    "del-resource": _named(lambda k, name, _a: k.del_resource(name)),
    "down": _down,
    "attach": _attach,
    "disk-options": _on_minor(
        lambda k, minor, a: k.disk_options(minor, _settings(a), set_defaults=a.has("set-defaults"))
    ),
    "detach": _on_minor(lambda k, minor, a: k.detach(minor, force=a.has("force"), diskless=a.has("diskless"))),
    "outdate": _on_minor(lambda k, minor, _a: k.outdate(minor)),
    "invalidate": _on_minor(
        lambda k, minor, a: k.invalidate(
            minor, int(a.get("sync-from-peer-node-id", "-1")) if a.has("sync-from-peer-node-id") else None
        )
    ),
    "invalidate-remote": _on_peer_device(
        lambda k, name, peer, volume, a: k.invalidate_remote(
            name, peer, volume, reset_bitmap=a.get("reset-bitmap", "yes") == "yes"
        )
    ),
    "new-current-uuid": _on_minor(
        lambda k, minor, a: k.new_current_uuid(
            minor, clear_bitmap=a.has("clear-bitmap"), force_resync=a.has("force-resync")
        )
    ),
    "resize": _resize,
    "verify": _on_peer_device(
        lambda k, name, peer, volume, a: k.verify(name, peer, volume, _offset(a, "start"), _offset(a, "stop"))
    ),
    "suspend-io": _on_minor(lambda k, minor, _a: k.suspend_io(minor)),
    "resume-io": _on_minor(lambda k, minor, _a: k.resume_io(minor)),
    "pause-sync": _on_peer_device(lambda k, name, peer, volume, _a: k.pause_sync(name, peer, volume)),
    "resume-sync": _on_peer_device(lambda k, name, peer, volume, _a: k.resume_sync(name, peer, volume)),
    "primary": _named(lambda k, name, a: k.primary(name, force=a.has("force"))),
    "secondary": _named(lambda k, name, a: k.secondary(name, force=a.has("force"))),
}


# --- what prints ---


def _status(process: Process, arguments: Arguments) -> int:
    name = arguments.rest[0] if arguments.rest and arguments.rest[0] != "all" else None
    kernel = process.host.kernel
    found = kernel.looks(name)
    if arguments.has("json"):
        process.out(status_json.text(found))
    else:
        style = status_text.Style(
            verbose=arguments.has("verbose"),
            statistics=arguments.has("statistics"),
            terminal=process.descriptors[1].terminal,
        )
        for look in found:
            process.out(status_text.text(look.fields, show.backing_paths(kernel, look.fields["name"]), style))
        if not kernel.resources():
            process.out("# No currently configured DRBD found.\n")
    if name is not None and not found:
        process.err(f"{name}: No such resource\n")
        return _NO_SUCH
    return 0


def _show(process: Process, arguments: Arguments) -> int:
    name = arguments.rest[0] if arguments.rest and arguments.rest[0] != "all" else None
    process.out(show.text(process.host.kernel.show(name), defaults=arguments.has("show-defaults")))
    return 0


def _role(process: Process, arguments: Arguments) -> int:
    name = arguments.rest[0]
    found = process.host.kernel.status(name)
    if not found:
        process.err(f"{name}: {Reply(Code.UNKNOWN_RESOURCE).message}\n")
        return _NO_SUCH
    process.out(f"{found[0]['role']}\n")
    return 0


def _connection_state(process: Process, arguments: Arguments) -> int:
    name, peer = arguments.rest[0], arguments.rest[1]
    for resource in process.host.kernel.status(name):
        for connection in resource["connections"]:
            if str(connection["peer-node-id"]) == peer:
                process.out(f"{connection['connection-state']}\n")
                return 0
    process.err(f"{name}: No such connection\n")
    return _NO_SUCH


def _disk_state(process: Process, arguments: Arguments) -> int:
    minor = int(arguments.rest[0])
    for resource in process.host.kernel.status():
        for device in resource["devices"]:
            if device["minor"] == minor:
                peers = [
                    peer["peer-disk-state"]
                    for connection in resource["connections"]
                    for peer in connection["peer_devices"]
                    if peer["volume"] == device["volume"]
                ]
                process.out("/".join([device["disk-state"], *peers]) + "\n")
                return 0
    process.err(f"{minor}: No such device\n")
    return _NO_SUCH


_PRINTING: dict[str, _Call] = {
    "status": _status,
    "show": _show,
    "check-resize": _check_resize,
    "role": _role,
    "cstate": _connection_state,
    "dstate": _disk_state,
}
