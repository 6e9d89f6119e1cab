"""``quorate kubeconfig``: the file that makes a client speak to ``quorate up``, as a person or as one node's agent."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="The configuration file of the server.")
@click.option("--data", help="The data directory of the server.")
@click.option("--agent", "node", metavar="NODE", help="For the agent of this node; its token is made if there is none.")
def kubeconfig(file: Path | None, data: str | None, node: str | None) -> None:
    """Print the kubeconfig of the server that runs on a data directory.

    With --agent it holds the token of that node's agent, which may write only its own node's objects. Remove
    DATA/agents/NODE to take the token back. Note that kubectl sends no token over plain HTTP: to see an agent's limits
    with it, give the server a token or a certificate.
    """
    import yaml

    from quorate.config import load
    from quorate.errors import ConfigError
    from quorate.server.kubernetes import AgentTokens

    os.umask(0o077)
    directory = Path(load(file, os.environ, {"data": data}).config.data).expanduser()
    try:
        found = yaml.safe_load((directory / "kubeconfig").read_text())
    except OSError as error:
        raise ConfigError(
            f"{directory / 'kubeconfig'} cannot be read: {error.strerror}. Is {directory} the data directory of"
            " a running `quorate up`?"
        ) from None
    if node:
        found["users"][0]["user"] = {"token": AgentTokens(directory / "agents").token(node)}
    click.echo(yaml.safe_dump(found, sort_keys=False), nl=False)
