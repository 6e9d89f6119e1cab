"""``quorate up``: everything in one process."""

from __future__ import annotations

import os
from pathlib import Path

import click

from quorate.cli.process_log import begin_log, log_options


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="The configuration file.")
@click.option("--data", help="The directory that holds everything that must survive.")
@click.option("--listen", help="The address to listen on; a token and TLS are required unless it is loopback.")
@click.option("--advertise", help="Names and addresses, by commas, that other machines reach it by.")
@click.option("--port", type=int, help="The port; 0 lets the system choose.")
@click.option("--token-file", help="A file with the bearer token that clients must present.")
@click.option("--tls-certificate", help="A PEM file with the server's certificate chain.")
@click.option("--tls-key", help="A PEM file with its private key.")
@click.option("--tls-authority", help="A PEM file with the authority that signed it, for the kubeconfig.")
@click.option("--broker-grpc", help="HOST:PORT for the maintenance broker's gRPC; default: our port + 1 on loopback.")
@click.option("--nodes", type=int, help="How many simulated nodes to start; 0 for none.")
@click.option("--zones", type=int, help="How many zones they stand in.")
@click.option("--drives", type=int, help="How many drives each of them has.")
@click.option("--accept-loss", is_flag=True, help="Go on without acknowledged changes that the database has lost.")
@log_options
def up(file: Path | None, accept_loss: bool, **flags: str | int | None) -> None:
    """Run the embedded engine, its Kubernetes API, the controllers and simulated nodes in this process.

    Prints a line with "ready" when it serves. SIGTERM and SIGINT stop it gracefully. Settings come from the
    configuration file, QUORATE_* variables and these flags: see "quorate config show" for the defaults.
    """
    import asyncio

    from quorate.config import load
    from quorate.server.standalone import run

    config = load(file, os.environ, flags).config
    os.umask(0o077)  # the store holds secrets, also in a directory that somebody else made
    begin_log(config.log_level, config.log_format)
    asyncio.run(run(config, announce=click.echo, accept_loss=accept_loss))
