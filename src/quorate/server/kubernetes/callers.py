"""Who sends a request: a person, or the agent of one node.

A token is a file: one for people, and in one directory one for each agent, named after its node. Of an agent that has
joined (``server/join.py``) the file has only the SHA-256, and the node alone has the token. The file is the truth:
where it is removed, replaced or written over, the old token opens nothing from that moment on. So it is read whenever
its token is shown: times of change are too coarse to rely on.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorate.api import names
from quorate.engine.logs import get_logger
from quorate.errors import ConfigError
from quorate.server.private_file import sync_names, write_private

_log = get_logger(__name__)

_AGENT_GROUP = "system:quorate:agents"
_EVERYBODY = "system:authenticated"
#: A node's name, which is a DNS name; it never leads out of the directory.
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NODE_NAME_LENGTH = 253
#: Before the digest of a token that is not kept here.
_HASHED = b"sha256:"
#: Seconds between two looks at all tokens because of one that is nobody's.
_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who somebody is, as ``kubectl auth whoami`` says it."""

    user: str
    groups: tuple[str, ...]
    #: The node whose agent this is. Everybody else may write everything.
    agent_of: str = ""


LOOPBACK = Caller("quorate:loopback", ("system:masters", _EVERYBODY))
ADMIN = Caller("quorate:admin", ("system:masters", _EVERYBODY))


def agent(node: str) -> Caller:
    """The agent of a node; on Kubernetes its certificate says the same."""
    return Caller(names.agent_user(node), (_AGENT_GROUP, _EVERYBODY), node)


def check_node_name(node: str) -> None:
    """ConfigError for what cannot be a node's name, and so no file's."""
    if len(node) > _NODE_NAME_LENGTH or not _NODE_NAME.fullmatch(node):
        raise ConfigError(f"{node!r} is not the name of a node: lower-case letters, digits, '-' and '.' are allowed")


class TokenFile:
    """The token for people."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problem = ""

    def read(self) -> str:
        """The token; ConfigError says why there is none."""
        try:
            token = self._path.read_text("utf-8").strip()
        except OSError as error:
            raise ConfigError(f"the token file {self._path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"the token file {self._path} is not text") from None
        if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError(f"the token in {self._path} must be at least 16 printable ASCII characters on one line")
        return token

    def now(self) -> str:
        """The token as it is now; empty while the file cannot be used, which the log says once."""
        try:
            token, problem = self.read(), ""
        except ConfigError as error:
            token, problem = "", str(error)
        if problem and problem != self._problem:
            _log.error("nobody but agents is known until this is mended", problem=problem)
        self._problem = problem
        return token


class AgentTokens:
    """The tokens of agents, in a directory.

    Tokens that are nobody's make it read them all: with a clock (``monotonic``) not more than once a second, unless a
    file came or went.
    """

    def __init__(self, directory: Path, *, monotonic: Callable[[], float] | None = None) -> None:
        self._directory = directory
        self._monotonic = monotonic
        self._read_at = -math.inf
        self._changed = -1
        self._nodes: dict[bytes, str] = {}
        #: Files with the token of another that have been told of.
        self._copies: set[str] = set()

    def token(self, node: str) -> str:
        """The token of a node's agent, made if there is none yet."""
        check_node_name(node)
        path = self._directory / node
        try:
            if not path.exists():
                self._write(node, secrets.token_urlsafe(32).encode())
            found = path.read_bytes().strip()
            token = found.decode("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the token file {path} cannot be made or read: {error}") from None
        if found.startswith(_HASHED):
            raise ConfigError(
                f"node {node} has joined, and nobody but itself has its token. To give it another: quorate node invite"
                f" {node}; to take it back: quorate node revoke {node}"
            )
        return token

    def replace(self, node: str) -> str:
        """A new token for a node's agent, told here and kept nowhere; the one that it had opens nothing now."""
        check_node_name(node)
        token = secrets.token_urlsafe(32)
        try:
            self._write(node, _HASHED + _digest(token.encode()).hex().encode())
        except OSError as error:
            raise ConfigError(f"the token file {self._directory / node} cannot be made: {error}") from None
        return token

    def revoke(self, node: str) -> bool:
        """Take an agent's token back; whether it had one."""
        check_node_name(node)
        try:
            (self._directory / node).unlink()
        except FileNotFoundError:
            return False
        sync_names(self._directory)
        return True

    def has(self, node: str) -> bool:
        """Whether a node's agent has a token."""
        check_node_name(node)
        return (self._directory / node).exists()

    def node_of(self, token: str) -> str | None:
        """The node whose agent has this token."""
        # By digest: how long it takes tells nothing of how much of a guess was right.
        wanted = _digest(token.encode(errors="surrogateescape"))
        for _ in range(2):
            node = self._nodes.get(wanted)
            if node is not None and hmac.compare_digest(wanted, self._digest_of(self._directory / node)):
                return node
            if not self._may_read():
                break
            self._nodes = self._read()
        return None

    def _write(self, node: str, content: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._directory / node, content)

    def _may_read(self) -> bool:
        if self._monotonic is None:
            return True
        try:
            changed = self._directory.stat().st_mtime_ns
        except OSError:
            changed = -1
        if changed == self._changed and self._monotonic() < self._read_at + _PAUSE:
            return False
        self._changed, self._read_at = changed, self._monotonic()
        return True

    def _read(self) -> dict[bytes, str]:
        try:
            names = [path for path in sorted(self._directory.iterdir()) if _NODE_NAME.fullmatch(path.name)]
        except OSError:  # there is no agent yet
            return {}
        found: dict[bytes, str] = {}
        for path in names:
            digest = self._digest_of(path)
            if not digest:
                continue
            first = found.setdefault(digest, path.name)
            if first != path.name and path.name not in self._copies:
                self._copies.add(path.name)
                _log.warning("two agents have one token, and the first is believed", node=first, copy=str(path))
        return found

    def _digest_of(self, path: Path) -> bytes:
        """Of the token in a file; empty for what is none: a directory, say, or a file that is gone or empty."""
        try:
            # Not into a pipe, on which a read would wait for ever.
            token = path.read_bytes().strip() if path.is_file() else b""
        except OSError:
            return b""
        if token.startswith(_HASHED):
            try:
                return bytes.fromhex(token.removeprefix(_HASHED).decode("ascii"))
            except ValueError:
                return b""
        return _digest(token) if token else b""


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
