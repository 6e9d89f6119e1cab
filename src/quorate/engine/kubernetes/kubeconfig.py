"""One context of the kubeconfig files, resolved to a ``Connection``.

Every problem is a ConfigError that names the file, the context and the field, and never a secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from quorate.api.secret import Secret
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import Credentials, FixedCredentials
from quorate.engine.kubernetes.exec_plugin import API_VERSIONS, ExecCommand, ExecCredentials, cluster_information
from quorate.engine.kubernetes.kubeconfig_file import Cluster, Entry, Exec, User, read_merged
from quorate.engine.kubernetes.proxy import checked_proxy, proxy_for
from quorate.errors import ConfigError

#: The extension of a cluster that is handed to exec plugins with provideClusterInfo.
EXEC_EXTENSION = "client.authentication.k8s.io/exec"

T = TypeVar("T")


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
    merged = read_merged(present)
    name = context or merged.current
    if not name:
        raise ConfigError(f"{shown}: current-context is not set; the contexts are: {_names(merged.contexts)}")
    chosen = _pick(merged.contexts, name, "context", shown)
    origin = f"{chosen.file}, context {name!r}"
    cluster = _pick(merged.clusters, chosen.value.cluster, "cluster", origin)
    user = _pick(merged.users, chosen.value.user, "user", origin) if chosen.value.user else Entry(chosen.file, User())
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


def _pick(defined: dict[str, Entry[T]], name: str, what: str, origin: str) -> Entry[T]:
    if name not in defined:
        raise ConfigError(f"{origin}: {what} {name!r} is not defined; defined are: {_names(defined)}")
    return defined[name]


def _names(defined: Mapping[str, object]) -> str:
    return ", ".join(sorted(defined)) or "none"


def _server(server: str, where: str) -> str:
    url = urlsplit(server)
    if "@" in url.netloc:
        raise ConfigError(f"{where}: server: credentials do not belong into the URL")
    if url.scheme not in ("https", "http") or not url.hostname:
        raise ConfigError(f"{where}: server: {server!r} is not an http or https URL")
    return server.rstrip("/")


def _ca(cluster: Entry[Cluster], where: str) -> bytes | None:
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
    entry: Entry[User],
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
    plugin: Exec, file: Path, whose: str, cluster: dict[str, Any], environ: Mapping[str, str], terminal: bool
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
