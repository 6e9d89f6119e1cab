"""``drbdsetup show --json``: what is configured, as far as it is not the default, or all of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quorate.lab.kernel import Kernel
from quorate.lab.tools.conf import options
from quorate.lab.tools.conf.options import Kind, Option


def text(resources: list[dict[str, Any]], *, defaults: bool) -> str:
    """The JSON text."""
    if not resources:
        return "[\n]\n"
    return json.dumps([_resource(resource, defaults) for resource in resources], indent=4) + "\n"


def backing_paths(kernel: Kernel, name: str) -> dict[int, str]:
    """The backing devices of a resource's volumes."""
    return {
        volume["volume_nr"]: volume["backing-disk"]
        for resource in kernel.show(name)
        for volume in resource["_this_host"]["volumes"]
        if volume.get("backing-disk", "none") != "none"
    }


def backing_path(kernel: Kernel, minor: int) -> str | None:
    """The backing device of a minor."""
    for resource in kernel.show():
        for volume in resource["_this_host"]["volumes"]:
            if volume["device_minor"] == minor and volume.get("backing-disk", "none") != "none":
                return str(volume["backing-disk"])
    return None


def _resource(resource: Mapping[str, Any], defaults: bool) -> dict[str, Any]:
    shown = dict(resource)
    shown["options"] = _section(resource.get("options", {}), options.RESOURCE, defaults)
    shown["_this_host"] = _this_host(resource["_this_host"], defaults)
    if resource.get("connections"):
        shown["connections"] = [_connection(connection, defaults) for connection in resource["connections"]]
    else:
        shown.pop("connections", None)
    return _without_empty(shown, ("options",))


def _this_host(host: Mapping[str, Any], defaults: bool) -> dict[str, Any]:
    volumes = []
    for volume in host["volumes"]:
        shown = dict(volume)
        if volume.get("backing-disk", "none") != "none":
            shown["disk"] = _section(volume.get("disk", {}), options.DISK, defaults)
        volumes.append(_without_empty(shown, ("disk",)))
    return {**host, "volumes": volumes}


def _connection(connection: Mapping[str, Any], defaults: bool) -> dict[str, Any]:
    shown = dict(connection)
    shown["net"] = _section(connection.get("net", {}), options.NET, defaults)
    return _without_empty(shown, ("net",))


def _section(values: Mapping[str, Any], known: Mapping[str, Option], defaults: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, option in known.items():
        value = values.get(name)
        if isinstance(value, bool):
            value = "yes" if value else "no"
        present = option.canonical(str(value)) if value not in (None, "") else option.default
        if present != option.default or (defaults and not name.startswith("_")):
            found[name] = present == "yes" if option.kind is Kind.FLAG else present
    return found


def _without_empty(shown: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if key not in names or value}
