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
    #: 0 lets the system choose; the line that says "ready" tells which.
    port: Annotated[int, Meta(ge=0, le=65535)] = 7480
    #: A file with the bearer token that clients must present; made in the data directory when one is needed.
    token_file: str = ""
    #: PEM files; made in the data directory when they are needed.
    tls_certificate: str = ""
    tls_key: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: auto: columns on a terminal, lines of JSON anywhere else.
    log_format: Literal["auto", "text", "json"] = "auto"


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
