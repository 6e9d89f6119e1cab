"""``quorate node invite``, ``revoke`` and ``forget``: who may be a node of a `quorate up`."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.output import output_option, print_documents
from quorate.cli.reaching import Where, reaching

if TYPE_CHECKING:
    from quorate.engine.store import Store


@click.command()
@click.argument("name", metavar="NODE")
@click.option("--zone", default="", help="The zone that it stands in.")
@click.option("--for", "lasts", default="1h", show_default=True, help="How long the token is good: 30m, 2h.")
@click.option("--server", help="The URL at which the node finds the server, if not as it says itself.")
@reaching
@output_option("text", "json")
def invite(where: Where, name: str, zone: str, lasts: str, server: str | None, output: str) -> None:
    """Print the command that makes a machine a node, which is run on that machine as root.

    Its token can be used once, and only for this node; an earlier one for the same node is void. A node that was
    installed anew joins again in the same way: what its old installation had opens nothing from then on.
    """
    import msgspec

    from quorate.api.duration import Duration

    try:
        seconds = int(Duration(lasts).seconds)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from None
    wish = {"node": name, "zone": zone, "seconds": seconds}
    answer: dict[str, Any] = msgspec.json.decode(where.send("POST", "/join/v1/invitations", msgspec.json.encode(wish)))
    url = server or answer["urls"][0]
    words = ["quorate", "node", "join", url, "--token", answer["token"]]
    if answer["fingerprint"]:
        words += ["--fingerprint", answer["fingerprint"]]
    if output == "json":
        print_documents([{**answer, "command": words}], "json")
        return
    expires = datetime.fromisoformat(answer["expires"]).astimezone(UTC)
    click.echo(f"On {name}, as root, once, until {expires:%Y-%m-%d %H:%M} UTC:\n")
    click.echo(f"    {shlex.join(words)}\n")
    if answer["hasCredential"]:
        click.echo(f"{name} has joined before. Its present credential is void as soon as this command is run.")
    others = [other for other in answer["urls"] if other != url]
    if server is None and others:
        click.echo(f"If the node does not reach {url}, it is also at {', '.join(others)} (--server).")


@click.command()
@click.argument("name", metavar="NODE")
@reaching
def revoke(where: Where, name: str) -> None:
    """Take a node's credential back, and its invitation: its agent can neither read nor write any more.

    Its volumes serve on, and are not managed there: after the time-out the node is NotReady. Invite it again to have
    it back.
    """
    click.echo(
        f"The credential of {name} is void: its agent is refused from now on."
        if _revoked(where, name)
        else f"{name} had neither a credential nor an invitation."
    )


@click.command()
@click.argument("name", metavar="NODE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@reaching
def forget(where: Where, name: str, yes: bool) -> None:
    """Take a node's credential back and delete its Node: it does not come back.

    Its replicas are made anew elsewhere. A machine that will be back keeps its Node: use `quorate node revoke`, or
    `quorate maintenance request` to switch it off for a while.
    """
    if not yes:
        click.echo(f"Every replica on {name} is given up, and made anew elsewhere where there is room.")
        click.confirm(f"Does {name} not come back?", abort=True)
    _revoked(where, name)
    there = where.ask(lambda store: _delete(store, name))
    click.echo(f"{name} is forgotten." if there else f"There is no Node {name}; its credential is void.")


def _revoked(where: Where, name: str) -> bool:
    import msgspec

    found: bool = msgspec.json.decode(where.send("DELETE", f"/join/v1/nodes/{name}", b""))["revoked"]
    return found


async def _delete(store: Store, name: str) -> bool:
    from quorate.api.core import Node
    from quorate.errors import NotFound

    try:
        await store.delete(Node, name)
    except NotFound:
        return False
    return True
