"""What is written in kubeconfig files, and how several of them become one.

The first file that defines a name, or sets the current context, wins, as with kubectl; every definition remembers
the file it came from, because relative paths count from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from quorate.api import codec
from quorate.api.secret import Secret
from quorate.errors import ConfigError

T = TypeVar("T")


class _Unshown(msgspec.Struct, frozen=True):
    """Shows no values: passwords may be in variables, arguments, URLs, and whatever other programs keep here."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class _Kebab(_Unshown, frozen=True, rename="kebab"):
    """Most names in a kubeconfig are kebab-case; those that are not say so."""


class Extension(_Kebab, frozen=True):
    """Something that another program keeps with a cluster."""

    name: str
    extension: Any = None


class Cluster(_Kebab, frozen=True):
    """Where an API server is, and whether to believe it."""

    server: str = ""
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool = False
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Variable(_Kebab, frozen=True):
    """One environment variable."""

    name: str
    value: str


class Exec(_Unshown, frozen=True, rename="camel"):
    """A command that prints credentials."""

    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str | None = None


class User(_Kebab, frozen=True):
    """Who we are. Fields that we refuse are read too: silence would mean another identity than was asked for."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: Secret | None = None
    token: Secret | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    exec: Exec | None = None
    username: str | None = None
    auth_provider: Any = None
    impersonated: str | None = msgspec.field(default=None, name="as")


class Context(_Kebab, frozen=True):
    """A cluster and a user together."""

    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: Context | None = None


class _File(_Kebab, frozen=True):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A definition and the file it came from."""

    file: Path
    value: T


@dataclass(slots=True)
class Merged:
    """All files as one."""

    current: str = ""
    clusters: dict[str, Entry[Cluster]] = field(default_factory=dict)
    users: dict[str, Entry[User]] = field(default_factory=dict)
    contexts: dict[str, Entry[Context]] = field(default_factory=dict)


def read_merged(files: list[Path]) -> Merged:
    """Read the files and merge them, in this order."""
    merged = Merged()
    for path in files:
        file = _read(path)
        merged.current = merged.current or file.current_context or ""
        _add(
            merged.clusters, path, "clusters", [(each.name, each.cluster or Cluster()) for each in file.clusters or ()]
        )
        _add(merged.users, path, "users", [(each.name, each.user or User()) for each in file.users or ()])
        _add(
            merged.contexts, path, "contexts", [(each.name, each.context or Context()) for each in file.contexts or ()]
        )
    return merged


def _add(into: dict[str, Entry[T]], path: Path, what: str, named: list[tuple[str, T]]) -> None:
    seen = set()
    for name, value in named:
        if name in seen:
            raise ConfigError(f"{path}: {what}: {name!r} is defined twice")
        seen.add(name)
        into.setdefault(name, Entry(path, value))


def _read(path: Path) -> _File:
    try:
        content = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # Not the error's text: it quotes the file, and the file is full of secrets.
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{path}: is not YAML{f' (line {mark.line + 1})' if mark else ''}") from None
    try:
        return codec.convert(_File, content if content is not None else {})
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error
