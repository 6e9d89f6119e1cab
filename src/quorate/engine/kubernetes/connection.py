"""Where an API server is, and how to talk to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.engine.kubernetes.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything that a kubeconfig context or a pod's environment says about one API server."""

    #: URL without a trailing slash; may have a path.
    server: str
    credentials: Credentials = field(repr=False)
    #: Where this came from, for error messages.
    origin: str
    #: PEM of the authorities to trust; None: the system's.
    ca: bytes | None = field(default=None, repr=False)
    verify: bool = True
    tls_server_name: str | None = None
    #: May hold a password, so it is not shown.
    proxy: str | None = field(default=None, repr=False)
    #: What the context calls the default namespace.
    namespace: str = "default"
