"""Who sends a request: a person, or the agent of one node.

An agent has a token of its own, a file in one directory, named after its node. The file is the truth: where it is
removed or replaced, the old token opens nothing from that moment on.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from quorate.errors import ConfigError
from quorate.server.kubernetes.tls import write_private

_AGENT_USER = "system:quorate:agent:"
_AGENT_GROUP = "system:quorate:agents"
_EVERYBODY = "system:authenticated"
#: A node's name, which is a DNS name; it never leads out of the directory.
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NODE_NAME_LENGTH = 253


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
    return Caller(_AGENT_USER + node, (_AGENT_GROUP, _EVERYBODY), node)


class AgentTokens:
    """The tokens of agents, in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read_at = -1
        self._nodes: dict[bytes, str] = {}

    def token(self, node: str) -> str:
        """The token of a node's agent, made if there is none yet."""
        if len(node) > _NODE_NAME_LENGTH or not _NODE_NAME.fullmatch(node):
            raise ConfigError(
                f"{node!r} is not the name of a node: lower-case letters, digits, '-' and '.' are allowed"
            )
        path = self._directory / node
        try:
            if not path.exists():
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(path, secrets.token_urlsafe(32).encode())
            return path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the token file {path} cannot be made or read: {error}") from None

    def node_of(self, token: str) -> str | None:
        """The node whose agent has this token."""
        try:
            changed = self._directory.stat().st_mtime_ns
            if changed != self._read_at:
                self._nodes = {_digest(path.read_bytes().strip()): path.name for path in self._files()}
                self._read_at = changed
        except OSError:  # no directory, or a file that went away just now: nobody is known until the next request
            return None
        # Looked up by digest: how long it takes tells nothing of how much of a guess was right.
        return self._nodes.get(_digest(token.encode(errors="surrogateescape")))

    def _files(self) -> list[Path]:
        return [path for path in sorted(self._directory.iterdir()) if _NODE_NAME.fullmatch(path.name)]


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
