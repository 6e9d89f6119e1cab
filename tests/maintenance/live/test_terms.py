"""Leadership and the ledger: what a leader does that is refused, and what becomes of numbers and permissions."""

from __future__ import annotations

from quorate.api import names
from quorate.api.annotation_keys import BROKER_ID
from quorate.api.core import Lease, Node
from quorate.api.maintenance import BrokerLedger, Permission
from quorate.api.meta import ObjectMeta
from quorate.engine.simulation import Simulation, run
from quorate.lab.layout import Layout
from tests.maintenance.live.laboratory import broker_lab

LEASE = "quorate-controller"


def test_a_leader_whose_lease_was_deleted_steps_down_once_and_goes_above_the_ledgers_epoch() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            assert (await lab.ask("node-1")).status.code == "ALLOW"
            for _ in range(2):
                lab.kill()
                await lab.sleep(20)
                lab.start()
                await lab.until_serving()
            assert (await lab.store.get(BrokerLedger, names.BROKER)).status.epoch == 3
            lab.kill()
            await lab.store.delete(Lease, LEASE, names.NAMESPACE)
            lab.start()
            await lab.sleep(2)
            assert not lab.broker_of.broker.leading, "epoch 1 is not above the ledger's"
            assert (await lab.ask("node-2")).status.code == "ERROR_TEMP"
            await lab.until_serving()
            lease = await lab.store.get(Lease, LEASE, names.NAMESPACE)
            ledger = await lab.store.get(BrokerLedger, names.BROKER)
            assert lease.spec.lease_transitions == ledger.status.epoch == 4
            assert [entry.id for entry in lab.broker_of.broker.ledger.permissions] == ["alice-p-1"]

    run(main, seed=1)


def test_a_leader_whose_ledger_is_taken_by_another_steps_down_and_comes_back_above_it() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            assert (await lab.ask("node-1")).status.code == "ALLOW"
            await lab.store.patch_status(BrokerLedger, names.BROKER, patch={"epoch": 40, "holder": "a stranger"})
            answer = await lab.ask("node-2", schedule=True)
            assert answer.status.code == "ERROR_TEMP"
            await lab.sleep(2)
            assert not lab.broker_of.broker.leading
            await lab.until_serving()
            ledger = await lab.store.get(BrokerLedger, names.BROKER)
            assert ledger.status.epoch == 41
            assert ledger.status.holder == "controller-1"
            assert [entry.id for entry in lab.broker_of.broker.ledger.permissions] == ["alice-p-1"]
            assert (await lab.ask("node-2", schedule=True)).status.code == "DISALLOW_TEMP"

    run(main, seed=1)


def test_a_ledger_that_was_lost_gives_no_number_twice() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim, Layout(nodes=3)) as lab:
            await lab.sleep(3)
            before = {node.name: node.metadata.annotations[BROKER_ID] for node in (await lab.store.list(Node)).items}
            lab.kill()
            await lab.store.delete(BrokerLedger, names.BROKER)
            lab.start()
            await lab.until_serving()
            await lab.store.create(Node(metadata=ObjectMeta(name="node-9")))
            await lab.sleep(3)
            after = {node.name: node.metadata.annotations[BROKER_ID] for node in (await lab.store.list(Node)).items}
            assert int(after["node-9"]) > max(map(int, before.values()))
            assert {name: after[name] for name in before} == before

    run(main, seed=1)


def test_who_stands_by_answers_so_and_takes_over_with_all_permissions() -> None:
    async def main(sim: Simulation) -> None:
        async with broker_lab(sim) as lab:
            assert (await lab.ask("node-1")).status.code == "ALLOW"
            await lab.sleep(1)
            leader, first = lab.broker_of, lab.controller
            assert first is not None
            lab.start()
            await lab.sleep(5)
            standby = lab.broker_of
            assert (await lab.ask("node-2")).status.code == "ERROR_TEMP"
            assert leader.broker.leading
            first.kill()
            await lab.until_serving()
            assert standby.broker.leading
            refused = await lab.ask("node-2")
            assert refused.status.code == "DISALLOW_TEMP"
            assert refused.refused[0].issue is not None
            assert refused.refused[0].issue.blockers[0].id == "alice-p-1"
            assert (await lab.store.get(Permission, "p-1")).status.id == "alice-p-1"

    run(main, seed=1)
