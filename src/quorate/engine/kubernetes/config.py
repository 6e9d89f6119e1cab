"""Which API server to use: what was asked for, else KUBECONFIG, else the pod we are in, else ~/.kube/config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quorate.engine.clock import Clock
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.credentials import FixedCredentials
from quorate.engine.kubernetes.kubeconfig import load_kubeconfig
from quorate.engine.kubernetes.proxy import proxy_for
from quorate.errors import ConfigError

#: Where Kubernetes mounts a pod's service account.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_connection(
    *,
    environ: Mapping[str, str],
    clock: Clock,
    kubeconfig: Path | None = None,
    context: str | None = None,
    terminal: bool = False,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection to use.

    ``kubeconfig`` and ``context`` are what a person asked for by flags; ``terminal`` says whether a person is
    there to answer an exec plugin's questions.
    """
    if kubeconfig is not None:
        if not kubeconfig.exists():
            raise ConfigError(f"{kubeconfig}: there is no such file")
        files = [kubeconfig]
    elif environ.get("KUBECONFIG"):
        files = [Path(part).expanduser() for part in environ["KUBECONFIG"].split(":") if part]
    elif environ.get("KUBERNETES_SERVICE_HOST") and context is None:
        return in_cluster(environ=environ, clock=clock, service_account=service_account)
    else:
        files = [Path(environ.get("HOME", "/")) / ".kube" / "config"]
    return load_kubeconfig(files, clock=clock, environ=environ, context=context, terminal=terminal)


def in_cluster(*, environ: Mapping[str, str], clock: Clock, service_account: Path = SERVICE_ACCOUNT) -> Connection:
    """The API server of the cluster that this pod runs in, as its service account."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: this is not a pod")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    origin = f"service account in {service_account}"
    try:
        ca = (service_account / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigError(f"{service_account / 'ca.crt'}: cannot be read: {error.strerror}") from error
    namespace = service_account / "namespace"
    return Connection(
        server=server,
        origin=origin,
        credentials=FixedCredentials(clock=clock, token=service_account / "token"),
        ca=ca,
        proxy=proxy_for(server, environ),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )
