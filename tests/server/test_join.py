"""Invitations: once, in time, for one node; and nothing that could be used is kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from quorate.api import all_kinds, labels
from quorate.api.core import Node, SecretObject
from quorate.api.meta import ObjectMeta
from quorate.engine.embedded import EmbeddedStore
from quorate.engine.simulation import Simulation, run
from quorate.errors import BadRequest, Conflict, TooManyRequests, Unauthorized
from quorate.server.fingerprint import certificates_in, fingerprint, is_fingerprint_of
from quorate.server.join import Attempt, Invitations, Wish
from quorate.server.kubernetes.callers import AgentTokens
from quorate.server.kubernetes.tls import ensure_certificates

PEER = "10.0.0.9"


@dataclass(frozen=True)
class Door:
    store: EmbeddedStore
    agents: AgentTokens
    invitations: Invitations

    async def invited(self, node: str, seconds: int = 3600) -> str:
        return (await self.invitations.invite(Wish(node, "z", seconds)))[0]


@asynccontextmanager
async def door(sim: Simulation, directory: Path) -> AsyncIterator[Door]:
    store = await EmbeddedStore.open(None, kinds=all_kinds(), clock=sim.clock, random=sim.random("store"), inline=True)
    agents = AgentTokens(directory)
    try:
        yield Door(store, agents, Invitations(store, agents, sim.clock))
    finally:
        await store.close()


def test_a_token_is_refused_in_words_once_its_time_is_over(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            token = await it.invited("n1", 600)
            await sim.clock.sleep(601)
            with pytest.raises(Unauthorized, match=r"was good until 2030-01-01 00:10 UTC\. .* quorate node invite n1"):
                await it.invitations.redeem(Attempt(token), PEER)
            assert not it.agents.has("n1")

    run(main, seed=1)


def test_of_two_that_come_at_once_with_one_token_one_joins(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            token = await it.invited("n1")
            ended = await asyncio.gather(
                *(it.invitations.redeem(Attempt(token), f"10.0.0.{number}") for number in range(4)),
                return_exceptions=True,
            )
            joined = [one for one in ended if not isinstance(one, BaseException)]
            assert len(joined) == 1
            assert it.agents.node_of(joined[0].token) == "n1"
            refused = [one for one in ended if isinstance(one, Unauthorized)]
            assert len(refused) == 3
            assert all("by 10.0.0." in one.message for one in refused), "they learn who was first"

    run(main, seed=1)


def test_the_store_has_no_token_and_the_directory_no_credential(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            token = await it.invited("n1")
            (stored,) = (await it.store.list(SecretObject)).items
            shown = [stored.metadata.name, *(value.reveal() for value in stored.data.values())]
            assert not [text for text in shown if token in text]
            joined = await it.invitations.redeem(Attempt(token), PEER)
            assert joined.token not in (tmp_path / "n1").read_text()
            assert it.agents.node_of(joined.token) == "n1"
            # What the file has is no token.
            assert it.agents.node_of((tmp_path / "n1").read_text()) is None

    run(main, seed=1)


def test_a_revoked_node_has_neither_credential_nor_invitation(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            joined = await it.invitations.redeem(Attempt(await it.invited("n1")), PEER)
            pending = await it.invited("n1")
            other = await it.invited("n2")
            assert await it.invitations.revoke("n1")
            assert it.agents.node_of(joined.token) is None
            with pytest.raises(Unauthorized):
                await it.invitations.redeem(Attempt(pending), PEER)
            assert (await it.invitations.redeem(Attempt(other), PEER)).node == "n2"
            assert not await it.invitations.revoke("n1")

    run(main, seed=1)


def test_whoever_guesses_waits_a_minute_and_others_do_not(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            token = await it.invited("n1")
            for _ in range(10):
                with pytest.raises(Unauthorized):
                    await it.invitations.redeem(Attempt("guess"), PEER)
            with pytest.raises(TooManyRequests) as refused:
                await it.invitations.redeem(Attempt(token), PEER)
            assert refused.value.retry_after == pytest.approx(60, abs=1)
            await sim.clock.sleep(61)
            assert (await it.invitations.redeem(Attempt(token), PEER)).node == "n1", "the token was not used up"
            for number in range(20):  # from many addresses: all of them together have a limit too
                for _ in range(10):
                    with pytest.raises(Unauthorized):
                        await it.invitations.redeem(Attempt("guess"), f"10.1.0.{number}")
            with pytest.raises(TooManyRequests):
                await it.invitations.redeem(Attempt("guess"), "10.2.0.1")

    run(main, seed=1)


def test_what_has_ended_is_forgotten_with_the_next_invitation(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            for number in range(5):
                await it.invited(f"n{number}", 60)
            await sim.clock.sleep(61)
            await it.invited("last")
            assert len((await it.store.list(SecretObject)).items) == 1

    run(main, seed=1)


@pytest.mark.parametrize(
    "wish",
    [
        *(Wish(name) for name in ("../etc", "N1", "n" * 64, "n" + ".n" * 100)),
        *(Wish("n1", "", seconds) for seconds in (5, 10**9)),
        *(Wish("n1", zone) for zone in ("z" * 64, "rack 3", "-a", "\u00e9", "a\n")),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, wish: Wish) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            with pytest.raises(BadRequest):
                await it.invitations.invite(wish)

    run(main, seed=1)


def test_a_fingerprint_is_recognised_as_others_write_it(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        made = ensure_certificates(tmp_path, ("localhost",), sim.clock.now())
        assert made.authority is not None
        authority = made.authority.read_bytes()
        shown = fingerprint(authority)
        digits = shown.removeprefix("sha256:")
        with_colons = ":".join(digits[at : at + 2] for at in range(0, 64, 2)).upper()
        assert is_fingerprint_of(shown, authority)
        assert is_fingerprint_of(with_colons, authority)
        assert not is_fingerprint_of(shown[:-1] + ("0" if shown[-1] != "0" else "1"), authority)
        assert not is_fingerprint_of("", authority)

    run(main, seed=1)


@pytest.mark.parametrize("heading", ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"])
def test_nothing_is_trusted_that_the_fingerprint_is_not_of(tmp_path: Path, heading: str) -> None:
    """Somebody between may add an authority of their own to the real one, in any way that OpenSSL reads."""

    async def main(sim: Simulation) -> None:
        real, other = (
            (ensure_certificates(tmp_path / name, ("localhost",), sim.clock.now()).authority or tmp_path).read_bytes()
            for name in ("real", "other")
        )
        sent = real + other.replace(b"CERTIFICATE", heading.encode())
        trusted = ssl.create_default_context(cadata=certificates_in(sent).decode()).get_ca_certs(binary_form=True)
        assert is_fingerprint_of(fingerprint(real), sent) == (heading != "CERTIFICATE")
        assert (len(trusted) == 1) == is_fingerprint_of(fingerprint(real), sent)
        # Words of people beside the certificates, in whatever encoding, are no part of it.
        assert certificates_in("# Autorité\n".encode("latin-1") + real) == real

    run(main, seed=1)


def test_a_node_that_has_an_agent_is_not_taken_by_another_machine(tmp_path: Path) -> None:
    async def main(sim: Simulation) -> None:
        async with door(sim, tmp_path) as it:
            meta = ObjectMeta(name="n1", labels={labels.REGISTERED: "agent"})
            node = await it.store.create(Node(metadata=meta))

            async def say(status: str) -> None:
                patch = {"conditions": [{"type": "Ready", "status": status}]}
                await it.store.patch_status(Node, "n1", patch=patch)

            await say("True")
            before = it.agents.token("n1")
            token = await it.invited("n1")
            with pytest.raises(Conflict, match="n1 is Ready"):
                await it.invitations.redeem(Attempt(token), PEER)
            with pytest.raises(Conflict, match="this machine is node n2"):
                await it.invitations.redeem(Attempt(token, was="n2"), PEER)
            assert it.agents.node_of(before) == "n1", "nothing was taken away"
            await say("Unknown")
            with pytest.raises(Conflict, match="this machine is node n2"):
                await it.invitations.redeem(Attempt(token, was="n2"), PEER)
            assert (await it.invitations.redeem(Attempt(token), PEER)).node == "n1"
            assert it.agents.node_of(before) is None
            # Its own machine may have another credential at any time.
            await say("True")
            assert (await it.invitations.redeem(Attempt(await it.invited("n1"), was="n1"), PEER)).node == node.name

    run(main, seed=1)
