"""Kubeconfig files: several are merged as kubectl does, one context is resolved to a ``Connection``.

The first file that defines a name, or sets the current context, wins; a relative path counts from the file that
holds it. Every problem is a ConfigError that names the file and the field.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from quorate.api import codec
from quorate.api.secret import Secret
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import Credentials, FixedCredentials
from quorate.engine.kubernetes.exec_plugin import API_VERSIONS, ExecCommand, ExecCredentials, cluster_information
from quorate.engine.kubernetes.proxy import checked_proxy, proxy_for
from quorate.errors import ConfigError

#: The extension of a cluster that is handed to exec plugins with provideClusterInfo.
EXEC_EXTENSION = "client.authentication.k8s.io/exec"

T = TypeVar("T")


class _Kebab(msgspec.Struct, frozen=True, rename="kebab"):
    """Most names in a kubeconfig are kebab-case; those that are not say so."""


class _Extension(_Kebab, frozen=True):
    name: str
    extension: Any = None


class _Cluster(_Kebab, frozen=True):
    server: str = ""
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool = False
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    extensions: list[_Extension] | None = None


class _Variable(_Kebab, frozen=True):
    name: str
    value: str


class _Exec(msgspec.Struct, frozen=True, rename="camel"):
    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str | None = None


class _User(_Kebab, frozen=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: Secret | None = None
    token: Secret | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    exec: _Exec | None = None
    username: str | None = None
    auth_provider: Any = None
    impersonated: str | None = msgspec.field(default=None, name="as")


class _Context(_Kebab, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: _Context | None = None


class _File(_Kebab, frozen=True):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    """A definition and the file it came from."""

    file: Path
    value: T


@dataclass(slots=True)
class _Merged:
    current: str = ""
    clusters: dict[str, _Entry[_Cluster]] = field(default_factory=dict)
    users: dict[str, _Entry[_User]] = field(default_factory=dict)
    contexts: dict[str, _Entry[_Context]] = field(default_factory=dict)


def load_kubeconfig(
    files: Iterable[Path],
    *,
    clock: Clock,
    environ: Mapping[str, str],
    context: str | None = None,
    terminal: bool = False,
) -> Connection:
    """The connection that a context describes; by default the files' current one. Missing files are left out."""
    files = list(files)
    shown = ", ".join(map(str, files))
    present = [file for file in files if file.exists()]
    if not present:
        raise ConfigError(f"{shown}: there is no such file; name a kubeconfig by flag or in KUBECONFIG")
    merged = _merge(present)
    name = context or merged.current
    if not name:
        raise ConfigError(f"{shown}: current-context is not set; the contexts are: {_names(merged.contexts)}")
    chosen = _pick(merged.contexts, name, "context", shown)
    origin = f"{chosen.file}, context {name!r}"
    cluster = _pick(merged.clusters, chosen.value.cluster, "cluster", origin)
    user = _pick(merged.users, chosen.value.user, "user", origin) if chosen.value.user else _Entry(chosen.file, _User())
    where = f"{origin}, cluster {chosen.value.cluster!r}"
    server = _server(cluster.value.server, where)
    ca = _ca(cluster, where)
    proxy = cluster.value.proxy_url
    proxy = checked_proxy(proxy, f"{where}: proxy-url") if proxy else proxy_for(server, environ)
    extensions = {each.name: each.extension for each in cluster.value.extensions or ()}
    information = cluster_information(
        server=server,
        tls_server_name=cluster.value.tls_server_name,
        verify=not cluster.value.insecure_skip_tls_verify,
        ca=ca,
        proxy=cluster.value.proxy_url,
        config=extensions.get(EXEC_EXTENSION),
    )
    whose = f"{origin}, user {chosen.value.user!r}"
    return Connection(
        server=server,
        origin=origin,
        credentials=_credentials(user, whose, information, clock=clock, environ=environ, terminal=terminal),
        ca=ca,
        verify=not cluster.value.insecure_skip_tls_verify,
        tls_server_name=cluster.value.tls_server_name or None,
        proxy=proxy,
        namespace=chosen.value.namespace or "default",
    )


def _merge(files: list[Path]) -> _Merged:
    merged = _Merged()
    for path in files:
        file = _read(path)
        merged.current = merged.current or file.current_context or ""
        _add(
            merged.clusters, path, "clusters", [(each.name, each.cluster or _Cluster()) for each in file.clusters or ()]
        )
        _add(merged.users, path, "users", [(each.name, each.user or _User()) for each in file.users or ()])
        _add(
            merged.contexts, path, "contexts", [(each.name, each.context or _Context()) for each in file.contexts or ()]
        )
    return merged


def _add(into: dict[str, _Entry[T]], path: Path, what: str, named: list[tuple[str, T]]) -> None:
    seen = set()
    for name, value in named:
        if name in seen:
            raise ConfigError(f"{path}: {what}: {name!r} is defined twice")
        seen.add(name)
        into.setdefault(name, _Entry(path, value))


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


def _pick(defined: dict[str, _Entry[T]], name: str, what: str, origin: str) -> _Entry[T]:
    if name not in defined:
        raise ConfigError(f"{origin}: {what} {name!r} is not defined; defined are: {_names(defined)}")
    return defined[name]


def _names(defined: Mapping[str, object]) -> str:
    return ", ".join(sorted(defined)) or "none"


def _server(server: str, where: str) -> str:
    url = urlsplit(server)
    if url.scheme not in ("https", "http") or not url.hostname:
        raise ConfigError(f"{where}: server: {server!r} is not an http or https URL")
    if url.username or url.password:
        raise ConfigError(f"{where}: server: credentials do not belong into the URL")
    return server.rstrip("/")


def _ca(cluster: _Entry[_Cluster], where: str) -> bytes | None:
    value = cluster.value
    if value.insecure_skip_tls_verify and (value.certificate_authority or value.certificate_authority_data):
        raise ConfigError(f"{where}: insecure-skip-tls-verify and certificate-authority exclude each other")
    if value.certificate_authority_data:
        return _base64(value.certificate_authority_data, f"{where}: certificate-authority-data")
    if value.certificate_authority:
        path = _beside(cluster.file, value.certificate_authority)
        try:
            return path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{where}: certificate-authority: {path}: {error.strerror}") from error
    return None


def _credentials(
    entry: _Entry[_User],
    whose: str,
    cluster: dict[str, Any],
    *,
    clock: Clock,
    environ: Mapping[str, str],
    terminal: bool,
) -> Credentials:
    user = entry.value
    if user.username is not None:
        raise ConfigError(f"{whose}: username: Kubernetes has no basic authentication any more; use a token")
    if user.auth_provider is not None:
        raise ConfigError(f"{whose}: auth-provider: removed from Kubernetes clients; use an exec plugin")
    if user.impersonated is not None:
        raise ConfigError(f"{whose}: as: impersonation is not supported")
    # The data fields win over the file fields, and a token file over a token, as kubectl has it.
    certificate: bytes | Path | None = None
    key: Secret | Path | None = None
    if user.client_certificate_data:
        certificate = _base64(user.client_certificate_data, f"{whose}: client-certificate-data")
    elif user.client_certificate:
        certificate = _beside(entry.file, user.client_certificate)
    if user.client_key_data is not None:
        key = Secret(_base64(user.client_key_data.reveal(), f"{whose}: client-key-data").decode(errors="replace"))
    elif user.client_key:
        key = _beside(entry.file, user.client_key)
    if (certificate is None) != (key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise ConfigError(f"{whose}: {missing} is missing: a client certificate needs both")
    token: Secret | Path | None = _beside(entry.file, user.token_file) if user.token_file else user.token
    if user.exec is None:
        try:
            return FixedCredentials(clock=clock, token=token, certificate=certificate, key=key)
        except ConfigError as error:
            raise ConfigError(f"{whose}: {error}") from error
    if token is not None or certificate is not None:
        raise ConfigError(f"{whose}: exec cannot be combined with a token or a client certificate")
    return ExecCredentials(_command(user.exec, entry.file, whose, cluster, environ, terminal), clock=clock)


def _command(
    plugin: _Exec, file: Path, whose: str, cluster: dict[str, Any], environ: Mapping[str, str], terminal: bool
) -> ExecCommand:
    if plugin.api_version not in API_VERSIONS:
        raise ConfigError(f"{whose}: exec.apiVersion: {plugin.api_version!r} is not one of {', '.join(API_VERSIONS)}")
    if not plugin.command:
        raise ConfigError(f"{whose}: exec.command is empty")
    mode = plugin.interactive_mode
    if mode is None and plugin.api_version.endswith("/v1"):
        raise ConfigError(f"{whose}: exec.interactiveMode must be set: Never, IfAvailable or Always")
    if mode not in (None, "Never", "IfAvailable", "Always"):
        raise ConfigError(f"{whose}: exec.interactiveMode: {mode!r} is not one of Never, IfAvailable, Always")
    if mode == "Always" and not terminal:
        raise ConfigError(f"{whose}: exec.interactiveMode is Always, and there is no terminal")
    # A command with a slash counts from the file, as other paths do; a bare name is looked up in PATH.
    command = str(_beside(file, plugin.command)) if "/" in plugin.command else plugin.command
    return ExecCommand(
        origin=whose,
        api_version=plugin.api_version,
        command=command,
        arguments=tuple(plugin.args or ()),
        environment={**environ, **{each.name: each.value for each in plugin.env or ()}},
        install_hint=plugin.install_hint.strip(),
        interactive=terminal and mode != "Never",
        cluster=cluster if plugin.provide_cluster_info else None,
    )


def _beside(file: Path, path: str) -> Path:
    return file.parent / path


def _base64(text: str, field_name: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise ConfigError(f"{field_name}: is not base64") from error
