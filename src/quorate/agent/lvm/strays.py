"""Tells of logical volumes that carry our tags and belong to no object.

They are not removed. An agent sees only objects with its node's label, from a cache: "no object" may mean that a label
is wrong, a store was restored from an older copy, or the agent was pointed at another cluster. A volume costs space; a
replica removed by mistake costs data. A person decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random

from quorate.agent.lvm.looker import Looker
from quorate.agent.lvm.seen import NEW, is_owner_tag, owner_tag, spare_tag
from quorate.agent.node import Node
from quorate.api.meta import Resource
from quorate.api.storage import LVMLogicalVolume, LVMVolumeGroup
from quorate.engine import Controller, Key, Plan, Reader, Watch, no_keys
from quorate.engine.logs import get_logger

log = get_logger(__name__)

_KEY = Key("", "lvm/strays")
#: Seconds between two checks, and after an object has gone: its volume may need a moment to follow.
INTERVAL = 600.0


@dataclass(frozen=True, slots=True)
class StrayView:
    """Volumes without an object, and those that were told of already."""

    strays: frozenset[str]
    told: frozenset[str]


class Strays:
    """Observes and decides for one node."""

    def __init__(self, node: Node, looker: Looker) -> None:
        self._node = node
        self._looker = looker
        self._told: frozenset[str] = frozenset()

    def controller(self) -> Controller[StrayView]:
        """What the manager runs."""
        return Controller(
            name="lvm-strays",
            watches=(Watch(LVMLogicalVolume, no_keys), Watch(LVMVolumeGroup, _the_key)),
            observe=self.observe,
            decide=self.decide,
            always=(_KEY,),
            workers=1,
        )

    def observe(self, reader: Reader, _: Key) -> StrayView:
        """Compare tags with objects."""
        volumes = self._looker.current_volumes
        if volumes is None:
            return StrayView(self._told, self._told)
        groups = {lvg.name: lvg.spec.actual_vg_name_on_the_node for lvg in reader.list(LVMVolumeGroup)}
        llvs = reader.list(LVMLogicalVolume)
        owners = {tag(llv.metadata.uid) for llv in llvs for tag in (owner_tag, spare_tag)}
        places = {(groups.get(llv.spec.lvm_volume_group_name, ""), llv.spec.actual_lv_name_on_the_node) for llv in llvs}
        strays = (
            volume.path
            for volume in volumes.volumes
            if any(tag == NEW or is_owner_tag(tag) for tag in volume.tags)
            and not owners & volume.tags
            and (volume.group, volume.name) not in places
        )
        return StrayView(frozenset(strays), self._told)

    def decide(self, view: StrayView, _now: datetime, _random: Random) -> Plan:
        """Tell of each once."""
        if view.strays == view.told:
            return Plan(requeue_after=INTERVAL)
        return Plan(effects=(partial(self._tell, view.strays),), requeue_after=INTERVAL)

    def _tell(self, strays: frozenset[str]) -> None:
        for path in sorted(strays - self._told):
            log.warning("a logical volume of ours has no object; it is left alone", path=path)
        self._told = strays


def _the_key(_: Resource) -> Iterable[Key]:
    return (_KEY,)
