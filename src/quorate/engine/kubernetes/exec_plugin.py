"""Credentials from an exec plugin (``client.authentication.k8s.io``): a command that prints an ExecCredential.

The command runs when there is no credential yet, when it has expired, and when the server refuses it. One run
serves every request that waits for it, and is not cut short when the request that started it gives up: a slow
plugin behind a 4-second write would otherwise never get to its end.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from quorate.api import codec
from quorate.api.secret import Secret
from quorate.api.struct import Struct
from quorate.engine.clock import Clock
from quorate.engine.kubernetes.credentials import Identity
from quorate.engine.kubernetes.tls import ClientCertificate
from quorate.errors import ConfigError, StoreUnreachable

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
RUN_TIMEOUT = 60.0


class _Status(Struct):
    expiration_timestamp: datetime | None = None
    token: Secret | None = None
    client_certificate_data: str | None = None
    client_key_data: Secret | None = None


class _ExecCredential(Struct):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class ExecCommand:
    """What to run, as a kubeconfig's ``user.exec`` says. Not shown is what may hold a password."""

    #: File, context and user, for error messages.
    origin: str
    api_version: str
    command: str
    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    install_hint: str
    #: Whether a person is at the terminal to answer the plugin's questions.
    interactive: bool
    #: ``spec.cluster`` of the request, if the plugin asks for it.
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)

    def request(self) -> bytes:
        """KUBERNETES_EXEC_INFO: what the plugin is told."""
        spec: dict[str, Any] = {"interactive": self.interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        return codec.encode({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})


class ExecCredentials:
    """The identity that an exec plugin gives.

    A plugin that cannot be used is a ConfigError as long as it has never worked. Once it has, the same problem is
    taken for one that passes: StoreUnreachable, which is tried again and does not end the process.
    """

    def __init__(self, command: ExecCommand, *, clock: Clock, timeout: float = RUN_TIMEOUT) -> None:
        self._command = command
        self._clock = clock
        self._timeout = timeout
        self._identity: Identity | None = None
        self._expires: datetime | None = None
        self._run: asyncio.Task[Identity] | None = None

    async def identity(self) -> Identity:
        expired = self._expires is not None and self._clock.now() >= self._expires
        if self._identity is None or expired:
            return await self._renewed()
        return self._identity

    async def renew(self, refused: Identity) -> Identity:
        if self._identity is not None and self._identity is not refused:
            return self._identity
        return await self._renewed()

    async def _renewed(self) -> Identity:
        if self._run is None:
            self._run = asyncio.create_task(self._run_plugin())
            self._run.add_done_callback(self._finished)
        try:
            return await asyncio.shield(self._run)
        except ConfigError as error:
            if self._identity is None:
                raise
            raise StoreUnreachable(str(error)) from error

    def _finished(self, run: asyncio.Task[Identity]) -> None:
        self._run = None
        # Everybody who waited may be gone; the next request starts a new run and sees its own error.
        if not run.cancelled():
            run.exception()

    async def _run_plugin(self) -> Identity:
        output = await self._output()
        try:
            credential = codec.decode(_ExecCredential, output)
        except msgspec.DecodeError as error:
            raise self._broken(f"printed something that is no ExecCredential: {error}") from error
        if credential.kind != "ExecCredential" or credential.api_version != self._command.api_version:
            found = f"{credential.api_version} {credential.kind}".strip()
            raise self._broken(f"printed {found!r}, not {self._command.api_version} ExecCredential")
        status = credential.status
        if status is None:
            raise self._broken("printed an ExecCredential without a status")
        if (status.client_certificate_data is None) != (status.client_key_data is None):
            raise self._broken("gave only one of clientCertificateData and clientKeyData")
        if not status.token and status.client_certificate_data is None:
            raise self._broken("gave neither a token nor a client certificate")
        certificate = None
        if status.client_certificate_data is not None and status.client_key_data is not None:
            certificate = ClientCertificate(status.client_certificate_data.encode(), status.client_key_data)
            if not certificate.fits():
                raise self._broken("gave a client certificate and a key that cannot be used together")
        self._identity = Identity(status.token, certificate)
        self._expires = status.expiration_timestamp
        return self._identity

    async def _output(self) -> bytes:
        command = self._command
        try:
            process, listener = await asyncio.get_running_loop().subprocess_exec(
                _Listener,
                command.command,
                *command.arguments,
                env={**command.environment, "KUBERNETES_EXEC_INFO": command.request().decode()},
                stdin=None if command.interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # A person must see the plugin's questions; otherwise what it says belongs into our error.
                stderr=None if command.interactive else asyncio.subprocess.PIPE,
                # Its own group, so that a plugin that does not finish is ended together with what it started.
                start_new_session=not command.interactive,
            )
        except OSError as error:
            hint = f"\n{command.install_hint}" if command.install_hint else ""
            raise self._broken(f"cannot be run: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(self._timeout):
                await listener.ended.wait()
        except TimeoutError as error:
            raise StoreUnreachable(f"{self._name()} did not finish within {self._timeout:g} s") from error
        finally:
            await self._end(process, listener)
        if (code := process.get_returncode()) != 0:
            said = listener.complaint.decode(errors="replace").strip()[-500:]
            raise StoreUnreachable(f"{self._name()} exited with {code}{': ' + said if said else ''}")
        return bytes(listener.output)

    async def _end(self, process: asyncio.SubprocessTransport, listener: _Listener) -> None:
        if not listener.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                if self._command.interactive:
                    process.kill()
                else:
                    # Also when the plugin itself is gone: something that it started holds its output open.
                    os.killpg(process.get_pid(), signal.SIGKILL)
            await listener.exited.wait()
        # Lets go of the pipes, whoever still holds their other ends.
        process.close()
        await listener.ended.wait()

    def _name(self) -> str:
        return f"{self._command.origin}: exec plugin {self._command.command!r}"

    def _broken(self, problem: str) -> ConfigError:
        return ConfigError(f"{self._name()} {problem}")


class _Listener(asyncio.SubprocessProtocol):
    """What a process says. It has ended when it has exited and nobody can say anything more in its place."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.complaint = bytearray()
        self.exited = asyncio.Event()
        self.ended = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.output if fd == 1 else self.complaint).extend(data)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


def cluster_information(
    *, server: str, tls_server_name: str | None, verify: bool, ca: bytes | None, proxy: str | None, config: Any
) -> dict[str, Any]:
    """``spec.cluster`` for a plugin with provideClusterInfo."""
    information: dict[str, Any] = {"server": server}
    if tls_server_name:
        information["tls-server-name"] = tls_server_name
    if not verify:
        information["insecure-skip-tls-verify"] = True
    if ca is not None:
        information["certificate-authority-data"] = base64.b64encode(ca).decode()
    if proxy:
        information["proxy-url"] = proxy
    if config is not None:
        information["config"] = config
    return information
