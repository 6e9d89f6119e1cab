"""The settings of a process: one versioned file, overridden by environment, overridden by flags.

Every value remembers where it came from, and ``quorate config show`` prints that. Settings that must agree between
processes are not here: they live in the ClusterConfig object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from quorate.errors import ConfigError

#: The version of the file's format that this program reads.
VERSION = 1
ENVIRONMENT_PREFIX = "QUORATE_"


class Config(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything that can be set, with its default. A relative path is relative to where the process starts."""

    #: The directory that holds everything that must survive a restart.
    data: Annotated[str, Meta(min_length=1)] = "~/.local/share/quorate"
    #: The address to listen on. Anything but a loopback address makes a token and TLS mandatory.
    listen: str = "127.0.0.1"
    #: The names and addresses, by commas, that other machines reach the server by, if not by the one it listens on.
    #: They are put into its certificate, and the first into the command that a node joins with.
    advertise: str = ""
    #: 0 lets the system choose; the line that says "ready" tells which.
    port: Annotated[int, Meta(ge=0, le=65535)] = 7480
    #: A file with the bearer token that clients must present; made in the data directory when one is needed.
    token_file: str = ""
    #: PEM files; made in the data directory when they are needed.
    tls_certificate: str = ""
    tls_key: str = ""
    #: The PEM file of the authority that signed the certificate, for the kubeconfig that `quorate up` writes. Empty:
    #: the end of the certificate's own chain, if that has signed itself; otherwise clients' systems must trust it.
    tls_authority: str = ""
    #: Simulated nodes that `quorate up` starts beside the server, the zones they stand in, and the drives of each.
    nodes: Annotated[int, Meta(ge=0, le=1000)] = 6
    zones: Annotated[int, Meta(ge=1, le=26)] = 3
    drives: Annotated[int, Meta(ge=0, le=64)] = 2
    #: HOST:PORT of the maintenance broker's gRPC, and of its HTTP and Wall-E. `quorate up` serves the latter where it
    #: serves everything; its gRPC is on the next port of loopback. `quorate controller` serves neither unless told.
    #: Beyond loopback a certificate (tlsCertificate, tlsKey) and users, or an authority for theirs, are mandatory.
    broker_grpc: str = ""
    broker_http: str = ""
    broker_users: str = ""
    broker_client_authority: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: auto: columns on a terminal, lines of JSON anywhere else.
    log_format: Literal["auto", "text", "json"] = "auto"

    # From here on, only for the agent; the controller shares kubeconfig and metrics.

    #: The node that it works on: the name of the core Node object.
    node_name: str = ""
    #: The kubeconfig of the API server. Empty: KUBECONFIG, the pod that it runs in, ~/.kube/config.
    kubeconfig: str = ""
    #: The directory for its lock. It must be the machine's own, and outlive a container.
    state_dir: Annotated[str, Meta(min_length=1)] = "/var/lib/quorate"
    #: What is put before every command, as in a shell: ``nsenter -t 1 -m -u -n -i --`` in a container.
    host_prefix: str = ""
    #: Where it finds the node's files. Empty: where the node has them.
    host_root: str = ""
    #: Where the node has the .res files of its resources, and where DRBD keeps what it knows of grown disks.
    drbd_config_dir: Annotated[str, Meta(min_length=1)] = "/var/lib/quorate/drbd.d"
    drbd_state_dir: Annotated[str, Meta(min_length=1)] = "/var/lib/drbd"
    #: Where the node has the files that images are filled from. Nothing else of the node is ever read for one.
    image_dir: Annotated[str, Meta(min_length=1)] = "/var/lib/quorate/images"
    #: Where it finds the node's /sys, /dev and /proc. Empty: under host_root.
    sys: str = ""
    dev: str = ""
    proc: str = ""
    #: Make and keep the core Node object, where there is no kubelet to do so; and the zone that it is put into.
    register_node: bool = False
    zone: str = ""
    #: The address that it is registered with. Empty: what its name stands for.
    address: str = ""
    #: Where /healthz, /readyz, /livez and /metrics are served. Not between 7000 and 7999: those are DRBD's.
    metrics_listen: str = "127.0.0.1"
    metrics_port: Annotated[int, Meta(ge=0, le=65535)] = 8480


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result, and the place that had the last word on each value."""

    config: Config
    origins: Mapping[str, str]


def load(file: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any]) -> Loaded:
    """Put the layers on each other. ``flags`` holds what was given, by the names of Config's attributes.

    Without ``file``, the environment's QUORATE_CONFIG names it, if anything does.
    """
    if file is None and environ.get(f"{ENVIRONMENT_PREFIX}CONFIG"):
        file = Path(environ[f"{ENVIRONMENT_PREFIX}CONFIG"])
    in_file = _read(file) if file else {}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for field in msgspec.structs.fields(Config):
        variable = ENVIRONMENT_PREFIX + field.name.upper()
        layers = (
            (f"{file}: {field.encode_name}", in_file.get(field.encode_name)),
            (f"environment variable {variable}", environ.get(variable)),
            (f"flag --{field.name.replace('_', '-')}", flags.get(field.name)),
        )
        origins[field.encode_name] = "default"
        for origin, value in layers:
            if value is not None:
                values[field.name] = _typed(value, field.type, origin)
                origins[field.encode_name] = origin
    return Loaded(Config(**values), origins)


def _typed(value: Any, wanted: Any, origin: str) -> Any:
    try:
        return msgspec.convert(value, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{origin}: {value!r} cannot be used: {error}") from None


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.expanduser().read_bytes())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: must hold a mapping with `version: {VERSION}` and settings")
    if content.pop("version", None) != VERSION:
        raise ConfigError(f"{file}: must say `version: {VERSION}`, the only one that this program reads")
    known = {field.encode_name for field in msgspec.structs.fields(Config)}
    if unknown := sorted(map(str, content.keys() - known)):
        raise ConfigError(f"{file}: unknown: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return content
