"""``quorate broker``: the maintenance broker over a described cluster."""

from __future__ import annotations

import os
from pathlib import Path

import click

from quorate.cli.process_log import FORMATS, LEVELS, begin_log

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--cluster", required=True, type=_FILE, help="The description of the cluster: YAML or JSON.")
@click.option("--http", default="127.0.0.1:8790", show_default=True, help="HOST:PORT; port 0 lets the system choose.")
@click.option("--grpc", default="127.0.0.1:8791", show_default=True, help="HOST:PORT; port 0 lets the system choose.")
@click.option("--state", type=_FILE, help="The file for everything that must survive; without it, nothing does.")
@click.option("--accept-loss", is_flag=True, help="Go on without acknowledged changes that the state file has lost.")
@click.option("--users", type=_FILE, help="A file of who may ask, with the digests of their tokens.")
@click.option("--tls-certificate", type=_FILE, help="A PEM file with the server's certificate chain.")
@click.option("--tls-key", type=_FILE, help="A PEM file with its private key.")
@click.option("--client-authority", type=_FILE, help="A PEM file: callers must show a certificate of this authority.")
@click.option("--log-level", type=LEVELS, default="info", show_default=True)
@click.option("--log-format", type=FORMATS, default="auto", show_default=True)
def broker(
    cluster: Path,
    http: str,
    grpc: str,
    state: Path | None,
    accept_loss: bool,
    users: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    client_authority: Path | None,
    log_level: str,
    log_format: str,
) -> None:
    """Serve the maintenance broker over a cluster that a file describes: for what-if work, other clusters, and tests.

    Prints a line with "ready" and both addresses when it serves. SIGTERM and SIGINT stop it gracefully. The cluster is
    changed from outside: PUT /cluster/nodes/{id}/state and its like, POST /cluster/clock. GET /openapi.json tells all.

    On loopback it is open to whoever can connect. Beyond, it takes TLS and --users or --client-authority. A users'
    file holds "users:", a list of name, role (user or admin) and tokenSha256: what "printf %s TOKEN | sha256sum" says.
    A client certificate's common name is the user; its organization quorate:admin makes an admin.
    """
    import asyncio

    from quorate.server.broker.listening import Address, secured
    from quorate.server.broker.process import run

    addresses = [Address.parse(http), Address.parse(grpc)]
    security = secured(
        addresses, users=users, certificate=tls_certificate, key=tls_key, client_authority=client_authority
    )
    os.umask(0o077)  # the state says who does what
    begin_log(log_level, log_format)
    asyncio.run(run(cluster, state, addresses[0], addresses[1], security, announce=click.echo, accept_loss=accept_loss))
