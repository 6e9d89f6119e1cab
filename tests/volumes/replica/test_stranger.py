"""Another program on a replica's port: the replica listens elsewhere within a minute, and no other link is touched."""

from __future__ import annotations

from quorate.api.core import Event
from quorate.api.storage.configuration import Replication
from quorate.engine.simulation import Simulation, run
from quorate.lab import faults
from quorate.lab.layout import Layout
from tests.volumes.attach.stories import Story
from tests.volumes.laboratory import VolumeLab, volume_lab


def links(lab: VolumeLab, node: str) -> set[str]:
    lab.cluster.driver.catch_up()
    found = lab.cluster.node(node).host.kernel.status("v")
    return {link["connection-state"] for link in found[0]["connections"]} if found else set()


def test_a_replica_whose_port_a_stranger_has_taken_listens_on_another() -> None:
    async def main(sim: Simulation) -> None:
        async with volume_lab(sim, Layout(nodes=3, zones=1, drives=1)) as lab:
            await Story.of(lab, Replication.CONSISTENCY_AND_AVAILABILITY)
            before = {str(each.spec.node_name): each.status.drbd.config.address for each in await lab.replicas()}
            node = min(before)
            old = before[node]
            assert old is not None
            lab.cluster.inject(faults.NodeDown(node))
            await lab.sleep(10)
            lab.cluster.inject(faults.Stranger(node, old.port))
            others = [name for name in before if name != node]
            logs = {name: len(lab.cluster.world.log(name)) for name in others}
            lab.cluster.inject(faults.NodeUp(node))
            await lab.sleep(60)
            after = {str(each.spec.node_name): each.status.drbd.config.address for each in await lab.replicas()}
            new = after[node]
            assert new is not None
            assert new.port != old.port
            assert {name: after[name] for name in others} == {name: before[name] for name in others}
            assert links(lab, node) == {"Connected"}
            for name in others:
                assert links(lab, name) == {"Connected"}
                lost = [line for _, line in lab.cluster.world.log(name)[logs[name] :] if "quorum( yes -> no )" in line]
                assert lost == []
            told = [each for each in (await lab.store.list(Event)).items if each.reason == "PortTaken"]
            assert len(told) == 1
            assert str(old.port) in told[0].message

    run(main, seed=1)
