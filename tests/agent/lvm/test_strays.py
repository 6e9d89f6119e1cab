"""Volumes that carry our tags and belong to no object are told of, and left alone."""

from __future__ import annotations

import pytest

from quorate.agent.lvm import strays
from quorate.agent.lvm.seen import NEW, owner_tag
from quorate.engine.simulation import Simulation, run
from tests.agent.lvm.fake import DATA, FakeMachine, Lv
from tests.agent.lvm.rig import Rig, llv, lvg


class Told:
    """Stands for the log, which tests keep quiet."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def warning(self, event: str, *, path: str) -> None:
        self.paths.append(path)


def test_a_volume_without_an_object_is_told_of_once_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(strays, "log", told)

    async def main(sim: Simulation) -> None:
        machine = FakeMachine()
        for name, tags in (("lost", {owner_tag("gone")}), ("begun", {NEW}), ("foreign", {"backup"})):
            machine.volumes[f"vg0/{name}"] = Lv(name, name, bytearray([DATA]) * 4, set(tags))
        rig = await Rig.begin(sim, machine)
        await rig.store.create(lvg())
        await rig.store.create(llv())
        rig.start()
        await sim.clock.sleep(7200)
        assert {"vg0/lost", "vg0/begun", "vg0/foreign"} < set(machine.volumes)

    run(main, seed=1)
    assert told.paths == ["/dev/vg0/begun", "/dev/vg0/lost"]
