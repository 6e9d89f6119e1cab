"""How a node comes to its credential: it is invited by name, and joins with a token that can be used once.

POST   /join/v1/invitations     by a person: a node's name, zone and seconds; the answer has the token, once
DELETE /join/v1/nodes/{node}    by a person: neither its invitation nor its credential opens anything any more
GET    /join/v1/authority       by anybody: the authority that the server's certificate is to be checked with
POST   /join/v1/nodes           by whoever has the token: the node's own credential

The server keeps neither in a form that could be used: of a token its SHA-256 is in a Secret of the store, of a
credential in the node's file of ``DATA/agents``. A token has 192 bits, so nobody guesses one; attempts are limited all
the same, so that nobody keeps the store busy with them. A token that was used is remembered for as long as it would
have been good, so that the one who comes second learns that somebody was first.

To ask for the authority is no secret and proves nothing: whoever joins compares its fingerprint with the one that the
person was shown who invited the node, before the token leaves the machine.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from quorate.api import labels, names
from quorate.api.core import Node, SecretObject
from quorate.api.meta import ObjectMeta
from quorate.api.secret import Secret
from quorate.engine.clock import Clock
from quorate.engine.embedded import label_value
from quorate.engine.logs import get_logger
from quorate.engine.selectors import match
from quorate.engine.store import Store
from quorate.errors import BadRequest, ConfigError, Conflict, Forbidden, NotFound, TooManyRequests, Unauthorized
from quorate.nodes.readiness import READY
from quorate.server.connections import peer_of
from quorate.server.fingerprint import fingerprint
from quorate.server.kubernetes.callers import AgentTokens, check_node_name
from quorate.server.kubernetes.requests import CALLER

T = TypeVar("T")

_log = get_logger(__name__)

INVITATIONS: Final = "/join/v1/invitations"
AUTHORITY: Final = "/join/v1/authority"
NODES: Final = "/join/v1/nodes"

#: Seconds that an invitation lasts unless somebody says otherwise, and the most that they may say.
USUAL: Final = 3600
LONGEST: Final = 7 * 24 * 3600
#: Attempts with a token that is not good, of one peer and of all, within a minute.
_OF_A_PEER: Final = 10
_OF_ALL: Final = 200
_MINUTE: Final = 60.0
#: Peers whose attempts are counted; the oldest are forgotten.
_PEERS: Final = 1024
_TYPE: Final = "quorate.io/node-invitation"
_BODY: Final = 4096


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a person asks for."""

    node: str
    zone: str = ""
    seconds: int = USUAL


class Invited(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to that. ``fingerprint`` is empty where clients' systems know whom to trust."""

    node: str
    token: str
    expires: datetime
    fingerprint: str
    urls: tuple[str, ...]
    #: Whether the node has a credential already, which joining replaces.
    has_credential: bool


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a machine shows. ``was``: which node it is already, as far as it knows; empty: none."""

    token: str
    was: str = ""


class Joined(msgspec.Struct, frozen=True, rename="camel"):
    """What it gets: who it is, where it stands, and its own credential."""

    node: str
    zone: str
    token: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """What the store has of an invitation."""

    node: str
    zone: str
    #: Of the token, in hex.
    digest: str
    expires: datetime
    #: Who used it, and when; empty: nobody yet.
    used: str = ""

    @classmethod
    def read(cls, stored: SecretObject) -> Invitation:
        """From its Secret."""
        values = {key: base64.b64decode(value.reveal()).decode() for key, value in stored.data.items()}
        expires = datetime.fromisoformat(values["expires"])
        return cls(values["node"], values["zone"], values["digest"], expires, values.get("used", ""))

    def data(self) -> Mapping[str, Secret]:
        """As a Secret has it."""
        values = {
            "node": self.node,
            "zone": self.zone,
            "digest": self.digest,
            "expires": self.expires.isoformat(),
            "used": self.used,
        }
        return {key: Secret(base64.b64encode(value.encode()).decode()) for key, value in values.items()}

    def objection(self, now: datetime) -> str:
        """Why it cannot be used now, in words; empty if it can."""
        again = f"Ask for another one on the server: quorate node invite {self.node}"
        if self.used:
            return f"this token was used already, {self.used}. If that was not you, somebody else has it. {again}"
        if now >= self.expires:
            return f"this token was good until {self.expires:%Y-%m-%d %H:%M} UTC. {again}"
        return ""


class Attempts:
    """How often somebody may be wrong."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def check(self, peer: str) -> None:
        """Raises TooManyRequests if they must wait."""
        now = self._monotonic()
        for whose, most in ((peer, _OF_A_PEER), ("", _OF_ALL)):
            recent = [moment for moment in self._failed.get(whose, ()) if now - moment < _MINUTE]
            if len(recent) >= most:
                wait = max(_MINUTE - (now - recent[-most]), 1.0)
                raise TooManyRequests(
                    f"too many attempts to join with tokens that are not good: try again in {wait:.0f} s",
                    retry_after=wait,
                )

    def failed(self, peer: str) -> None:
        """They were wrong."""
        now = self._monotonic()
        for whose in (peer, ""):
            recent = [moment for moment in self._failed.pop(whose, []) if now - moment < _MINUTE]
            self._failed[whose] = [*recent, now][-_OF_ALL:]
        while len(self._failed) > _PEERS:
            self._failed.popitem(last=False)


class Invitations:
    """Who may join, over the store that has the invitations and the directory that has the credentials."""

    def __init__(self, store: Store, agents: AgentTokens, clock: Clock) -> None:
        self._store = store
        self._agents = agents
        self._clock = clock
        self._attempts = Attempts(clock.monotonic)
        #: One at a time: of two that come with one token, one must see that the other was first.
        self._lock = asyncio.Lock()

    async def invite(self, wish: Wish) -> tuple[str, Invitation]:
        """A token for a node; those that it had before are good for nothing any more."""
        _check(wish.node)
        if not 60 <= wish.seconds <= LONGEST:
            raise BadRequest(f"an invitation lasts from a minute to {LONGEST // 86400} days, not {wish.seconds} s")
        for what, value in (("a node's name", wish.node), ("a zone", wish.zone)):
            if problems := label_value(value):
                raise BadRequest(f"{what} is the value of a label, and {value!r} cannot be: {'; '.join(problems)}")
        async with self._lock:
            await self._clean(wish.node)
            token = secrets.token_urlsafe(24)
            expires = self._clock.now() + timedelta(seconds=wish.seconds)
            made = Invitation(wish.node, wish.zone, _digest(token), expires)
            meta = ObjectMeta(name=_name(token), namespace=names.NAMESPACE, labels={labels.INVITATION: "node"})
            await self._store.create(SecretObject(metadata=meta, type=_TYPE, data=made.data()))
        _log.info("a node was invited", node=wish.node, until=expires.isoformat())
        return token, made

    async def redeem(self, attempt: Attempt, remote: str) -> Joined:
        """The credential of the node that was invited with this token. The one that it had before opens nothing now.

        Conflict: another machine was meant, and the token is still good.
        """
        peer = peer_of(remote) if remote else ""
        self._attempts.check(peer)
        try:
            async with self._lock:
                found = await self._use(attempt, remote)
                # After the token is used up, and before anybody is told: a crash between costs another invitation.
                credential = self._agents.replace(found.node)
        except Unauthorized as refused:
            self._attempts.failed(peer)
            _log.warning("an attempt to join was refused", peer=remote, why=refused.message.partition(".")[0])
            raise
        _log.info("a node joined", node=found.node, peer=remote)
        return Joined(found.node, found.zone, credential)

    async def revoke(self, node: str) -> bool:
        """Whether there was anything to take back."""
        _check(node)
        async with self._lock:
            had_invitation = await self._clean(node)
            had_credential = self._agents.revoke(node)
        _log.info("a node's credential was revoked", node=node)
        return had_invitation or had_credential

    def has_credential(self, node: str) -> bool:
        """Whether its agent has one."""
        _check(node)
        return self._agents.has(node)

    async def _use(self, attempt: Attempt, remote: str) -> Invitation:
        """The invitation of a token, used up; Unauthorized and Conflict say why not."""
        token = attempt.token
        try:
            stored = await self._store.get(SecretObject, _name(token), names.NAMESPACE)
        except NotFound:
            stored = None
        found = Invitation.read(stored) if stored is not None and stored.type == _TYPE else None
        if stored is None or found is None or not hmac.compare_digest(found.digest, _digest(token)):
            raise Unauthorized(
                "this token is not known here: it was mistyped, another one was made for the node since, or it is for"
                " another server. Ask for another one on the server: quorate node invite NODE"
            )
        now = self._clock.now()
        if problem := found.objection(now):
            raise Unauthorized(problem)
        await self._refuse_another_machine(attempt.was, found.node)
        used = Invitation(
            found.node, found.zone, found.digest, found.expires, f"{now:%Y-%m-%d %H:%M} UTC, by {remote or 'somebody'}"
        )
        try:
            await self._store.patch(
                SecretObject,
                stored.metadata.name,
                names.NAMESPACE,
                patch={"data": {key: value.reveal() for key, value in used.data().items()}},
                resource_version=stored.metadata.resource_version,
            )
        except (Conflict, NotFound):
            raise Unauthorized("this token was used or taken back at this very moment") from None
        return found

    async def _refuse_another_machine(self, was: str, node: str) -> None:
        """A command that was run on the wrong machine must not take a node's place away from the one that has it."""
        if was and was != node:
            raise Conflict(
                f"this machine is node {was}, and the token is for {node}: it was not used, and is still good. If"
                f" {was} is really to be {node} from now on, stop its agent and remove its agent.yaml first"
            )
        if not was and await self._is_ready(node):
            raise Conflict(
                f"node {node} is Ready: its agent works, on another machine. The token was not used, and is still good."
                f" Stop that agent, wait until {node} is not Ready any more, and run this again; or invite this machine"
                " by another name"
            )

    async def _is_ready(self, node: str) -> bool:
        try:
            found = await self._store.get(Node, node)
        except NotFound:
            return False
        return any(condition.type == READY and condition.status == "True" for condition in found.status.conditions)

    async def _clean(self, node: str) -> bool:
        """Forget the invitations of a node, and those of others that ended; whether the node had one."""
        had = False
        for stored in (await self._store.list(SecretObject, namespace=names.NAMESPACE, labels=_OURS)).items:
            found = Invitation.read(stored)
            if found.node == node or self._clock.now() >= found.expires:
                had = had or (found.node == node and not found.objection(self._clock.now()))
                await self._store.delete(SecretObject, stored.metadata.name, names.NAMESPACE, uid=stored.metadata.uid)
        return had


_OURS: Final = match({labels.INVITATION: "node"})


def routes(
    invitations: Invitations, *, authority: bytes | None, urls: Callable[[], Iterable[str]]
) -> list[web.RouteDef]:
    """What the server serves of it. ``urls``: where nodes find the server, the likeliest first."""

    async def invite(request: web.Request) -> web.Response:
        _refuse_agents(request)
        wish = await _read(request, Wish)
        had = invitations.has_credential(wish.node)
        token, made = await invitations.invite(wish)
        known = fingerprint(authority) if authority is not None else ""
        return _json(Invited(made.node, token, made.expires, known, tuple(urls()), had), code=201)

    async def revoke(request: web.Request) -> web.Response:
        _refuse_agents(request)
        return _json({"revoked": await invitations.revoke(request.match_info["node"])})

    async def tell_authority(_: web.Request) -> web.Response:
        if authority is None:
            raise NotFound("this server's certificate is checked with the authorities that your system knows")
        return web.Response(body=authority, content_type="application/x-pem-file")

    async def join(request: web.Request) -> web.Response:
        return _json(await invitations.redeem(await _read(request, Attempt), request.remote or ""), code=201)

    return [
        web.post(INVITATIONS, invite),
        web.delete(NODES + "/{node}", revoke),
        web.get(AUTHORITY, tell_authority),
        web.post(NODES, join),
    ]


def _check(node: str) -> None:
    try:
        check_node_name(node)
    except ConfigError as error:
        raise BadRequest(str(error)) from None


def _refuse_agents(request: web.Request) -> None:
    if request[CALLER].agent_of:
        raise Forbidden("an agent invites nobody, and takes nobody's credential back")


async def _read(request: web.Request, wanted: type[T]) -> T:
    body = bytearray()
    async for chunk in request.content.iter_chunked(_BODY):
        body += chunk
        if len(body) > _BODY:  # anybody may send it: no more is read
            raise BadRequest("that is too long to be a token")
    try:
        return msgspec.json.decode(body, type=wanted)
    except msgspec.MsgspecError as error:
        raise BadRequest(str(error)) from None


def _json(value: object, code: int = 200) -> web.Response:
    return web.Response(status=code, body=msgspec.json.encode(value), content_type="application/json")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def _name(token: str) -> str:
    """Of its Secret: found by whoever has the token, and telling nothing of it."""
    return f"node-invitation-{_digest(token)[:24]}"
