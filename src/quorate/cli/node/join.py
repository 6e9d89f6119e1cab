"""``quorate node join``: makes this machine a node, with a credential of its own.

The order matters: whom to trust is settled before the token is sent, and everything is written before anything is
started. The authority comes from the server itself, over a connection that proves nothing; what makes it trusted is its
fingerprint, which the person brings from the server's own machine, or compares on the spot.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    import ssl

#: Seconds for an answer.
_PATIENCE = 30.0
_MOST = 1 << 20
UNITS = ("quorate-agent.service", "quorate-shutdown.service")
_UNIT_DIRECTORY = Path("/etc/systemd/system")
#: There where systemd is the init system.
_SYSTEMD = Path("/run/systemd/system")
#: How the units are shipped: where Debian's packages put a program.
_PROGRAM = "/usr/bin/quorate"


@click.command()
@click.argument("server", metavar="URL")
@click.option("--token", help="The token of the invitation. Others on this machine can see it while this runs.")
@click.option("--token-file", type=click.Path(path_type=Path, allow_dash=True), help="A file with it; - for stdin.")
@click.option("--fingerprint", help="Of the server's authority; without it, it is shown and you are asked.")
@click.option("--address", help="The node's address for the others; default: the one that it reaches the server by.")
@click.option("--directory", type=click.Path(path_type=Path), default="/etc/quorate", show_default=True, hidden=True)
@click.option("--no-start", is_flag=True, help="Write the files, and neither enable nor start anything.")
def join(
    server: str,
    token: str | None,
    token_file: Path | None,
    fingerprint: str | None,
    address: str | None,
    directory: Path,
    no_start: bool,
) -> None:
    """Make this machine a node of the server, with the token that `quorate node invite` printed there.

    Writes the agent's kubeconfig (/etc/quorate/agent.kubeconfig) with a credential for this node alone, and its
    configuration (/etc/quorate/agent.yaml); then enables and starts the agent, where systemd runs. Run it again, with
    another token, after the machine was installed anew.
    """
    from quorate.server.addresses import is_loopback

    place = Place.parse(server)
    _check_writable(directory)
    configuration = directory / "agent.yaml"
    before = _settings(configuration)
    given = _token(token, token_file)
    authority = _trusted(place, fingerprint)
    answer, own_address = _redeem(place, given, authority, was=str(before.get("nodeName") or ""))
    os.umask(0o077)
    settings = {"version": 1, **before, "nodeName": answer["node"], "registerNode": True}
    settings["address"] = address or own_address
    if answer["zone"]:
        settings["zone"] = answer["zone"]
    _write(configuration, place, authority, str(answer["token"]), settings)
    where = f"in zone {settings['zone']}" if settings.get("zone") else "without a zone"
    shown = f"node {settings['nodeName']}, {where}, at {settings['address']}"
    click.echo(f"This machine is {shown}; its settings are in {configuration}.")
    if is_loopback(str(settings["address"])):
        click.echo(
            "No other machine reaches it there, and no volume has copies on both. Set `address` in that file before the"
            " agent has volumes, or join with --address.",
            err=True,
        )
    if no_start:
        click.echo(f"Start its agent with: quorate agent --config {configuration}")
        return
    _start(configuration)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is."""

    secure: bool
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Place:
        """ConfigError for what is no such URL, or would send the token in the clear."""
        from quorate.errors import ConfigError
        from quorate.server.addresses import is_loopback

        try:
            found = urlsplit(text)
            host, port = found.hostname or "", found.port
        except ValueError:
            host, port = "", None
        if found.scheme not in ("https", "http") or not host or found.path not in ("", "/"):
            raise ConfigError(f"{text!r} is not the URL of a server, as https://10.0.0.1:7480 is")
        if found.scheme == "http" and not is_loopback(host):
            raise ConfigError(f"{text} would send the token in the clear: only https, unless it is this very machine")
        return cls(found.scheme == "https", host, port or (443 if found.scheme == "https" else 80))

    @property
    def url(self) -> str:
        """As a kubeconfig has it."""
        from quorate.server.addresses import url

        return url(self.host, self.port, secure=self.secure)

    def connect(self, tls: ssl.SSLContext) -> HTTPConnection:
        """A connection that is not open yet."""
        if self.secure:
            return HTTPSConnection(self.host, self.port, timeout=_PATIENCE, context=tls)
        return HTTPConnection(self.host, self.port, timeout=_PATIENCE)


def _token(given: str | None, file: Path | None) -> str:
    from quorate.errors import ConfigError

    if (given is None) == (file is None):
        raise ConfigError("give the token of the invitation, with --token, or with --token-file (- for standard input)")
    if file is None:
        assert given is not None
        return given.strip()
    try:
        text = sys.stdin.read(_MOST) if str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token in {file} cannot be read: {error}") from None
    return text.strip()


def _trusted(place: Place, fingerprint: str | None) -> bytes | None:
    """The server's authority, recognised, and nothing else; None: one that this machine trusts anyway, or no TLS."""
    import ssl

    from quorate.errors import ConfigError
    from quorate.server.fingerprint import certificates_in, is_fingerprint_of
    from quorate.server.fingerprint import fingerprint as fingerprint_of

    if not place.secure:
        return None
    unproven = ssl.create_default_context()
    unproven.check_hostname = False
    unproven.verify_mode = ssl.CERT_NONE
    status, body, _ = _ask(place, unproven, "GET", "/join/v1/authority")
    if status == 404:
        if fingerprint is not None:
            raise ConfigError(
                f"{place.url} has no authority of its own, so nothing has that fingerprint. If its certificate is of an"
                " authority that this machine trusts, leave --fingerprint out"
            )
        return None
    if status != 200:
        raise _refusal(place, status, body)
    found = fingerprint_of(body)
    if fingerprint is None:
        _ask_person(place, found)
    elif not is_fingerprint_of(fingerprint, body):
        raise ConfigError(
            f"{place.url} has the authority {found}, not {fingerprint}: it is another server, or somebody is between."
            " The token was not sent. See on the server: quorate node invite"
        )
    return certificates_in(body)


def _ask_person(place: Place, found: str) -> None:
    from quorate.errors import ConfigError

    click.echo(f"The authority of {place.url} is\n    {found}", err=True)
    if not sys.stdin.isatty():
        raise ConfigError(
            "nobody is here to say whether that is right. If it is what `quorate node invite` shows on the server, give"
            f" it: --fingerprint {found}"
        )
    click.confirm("Is that what `quorate node invite` shows on the server?", abort=True, err=True)


def _redeem(place: Place, token: str, authority: bytes | None, *, was: str) -> tuple[dict[str, Any], str]:
    """What the server gives for the token, and this machine's address on the way there."""
    import ssl

    tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority is not None else None)
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as the agent's own client
    body = json.dumps({"token": token, "was": was}).encode()
    status, answer, own = _ask(place, tls, "POST", "/join/v1/nodes", body)
    if status != 201:
        raise _refusal(place, status, answer)
    return json.loads(answer), own


def _ask(
    place: Place, tls: ssl.SSLContext, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes, str]:
    import ssl

    from quorate.errors import StoreUnreachable

    connection = place.connect(tls)
    try:
        connection.connect()
        own = str(connection.sock.getsockname()[0])
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST), own
    except ssl.SSLCertVerificationError as error:
        raise StoreUnreachable(
            f"the certificate of {place.url} is not good for that name: {error.verify_message}. The token was not sent."
            " Use a name or address that is in it, or let the server have this one too (quorate up --advertise)"
        ) from None
    except (OSError, HTTPException) as error:
        raise StoreUnreachable(f"{place.url} does not answer: {error}") from None
    finally:
        connection.close()


def _refusal(place: Place, status: int, body: bytes) -> Exception:
    from quorate.errors import QuorateError

    try:
        said = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        said = body[:200].decode(errors="replace").strip()
    return QuorateError(f"{place.url} refuses ({status}): {said}")


def _check_writable(directory: Path) -> None:
    """Before the token is used up."""
    from quorate.errors import ConfigError

    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory} cannot be made: {error.strerror}. Are you root?") from None
    if not os.access(directory, os.W_OK):
        raise ConfigError(f"{directory} cannot be written to. Are you root?")


def _settings(configuration: Path) -> dict[str, Any]:
    """What is in the agent's configuration already: what somebody has set stays. Before the token is used up."""
    import yaml

    from quorate.errors import ConfigError

    try:
        found = yaml.safe_load(configuration.read_text()) if configuration.exists() else None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{configuration} cannot be read, and was left as it is: {error}") from None
    if not isinstance(found, dict | None):
        raise ConfigError(f"{configuration} has no settings in it, and was left as it is: mend or remove it")
    return found or {}


def _write(
    configuration: Path, place: Place, authority: bytes | None, credential: str, settings: dict[str, Any]
) -> None:
    """The agent's files."""
    import yaml

    from quorate.server.kubeconfig import kubeconfig, write_kubeconfig
    from quorate.server.private_file import write_private

    path = configuration.with_name("agent.kubeconfig")
    write_kubeconfig(path, kubeconfig(place.url, authority=authority, token=credential))
    content = {**settings, "kubeconfig": str(path)}
    write_private(configuration, yaml.safe_dump(content, sort_keys=False).encode())


def _start(configuration: Path) -> None:
    """Let systemd run the agent, now and at every boot."""
    from quorate.errors import QuorateError

    if not _SYSTEMD.is_dir():
        click.echo(f"systemd does not run here. Start its agent with: quorate agent --config {configuration}")
        return
    for unit in UNITS:
        if _systemctl("cat", unit).returncode != 0:  # nobody has installed it
            (_UNIT_DIRECTORY / unit).write_text(unit_text(unit, _program()))
            (_UNIT_DIRECTORY / unit).chmod(0o644)
    # The agent may run with what it had before; the other unit is never stopped but with the machine.
    for words in (["daemon-reload"], ["enable", *UNITS], ["start", *UNITS], ["restart", UNITS[0]]):
        done = _systemctl(*words)
        if done.returncode != 0:
            raise QuorateError(
                f"the node has joined, but `systemctl {' '.join(words)}` failed: {done.stderr.strip()}. Mend that and"
                " start the agent again; no token is needed for it"
            )
    click.echo(f"{' and '.join(UNITS)} are enabled and run: systemctl status quorate-agent")


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607


def unit_text(unit: str, program: str) -> str:
    """A unit as it is shipped, for a program that may be elsewhere."""
    return (Path(__file__).parent / "units" / unit).read_text().replace(_PROGRAM, program)


def _program() -> str:
    """This very program, as systemd must call it; also where it was called as a module of Python."""
    beside = Path(sys.executable).with_name("quorate")
    found = shutil.which(sys.argv[0]) or (beside if beside.exists() else _PROGRAM)
    return str(Path(found).absolute())
