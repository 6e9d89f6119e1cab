"""Keeps the namespace ``quorate-system`` and the ClusterConfig ``cluster`` present, and judges the configuration.

| what is seen                     | what is done                                                          |
|----------------------------------|-----------------------------------------------------------------------|
| no namespace, or no ClusterConfig | they are created; the configuration with its defaults                |
| a ClusterConfig that can be used | ``Applied=True``, and the generation it speaks of                     |
| one that cannot                  | ``Applied=False/Invalid`` with every reason, and a warning            |
| one of them is being deleted     | nothing: it is made anew once it is gone                              |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from random import Random

from quorate.api import conditions
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec
from quorate.api.conditions import Verdict
from quorate.api.conditions.maintenance import Applied
from quorate.api.core import Namespace
from quorate.api.meta import ObjectMeta, Resource
from quorate.api.names import CLUSTER, NAMESPACE
from quorate.engine import Controller, Create, Key, PatchStatus, Plan, PlanEvent, Reader, Watch

#: There is one cluster, so there is one key.
THE_CLUSTER = Key("", CLUSTER)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a cluster stands on, as far as it is there."""

    namespace: Namespace | None
    config: ClusterConfig | None


def observe(reader: Reader, _: Key) -> Ground:
    """Gather the two objects."""
    return Ground(reader.get(Namespace, NAMESPACE), reader.get(ClusterConfig, CLUSTER))


def decide(ground: Ground, now: datetime, _: Random) -> Plan:
    """Create what is missing; judge what is there."""
    missing: list[Resource] = []
    if ground.namespace is None:
        missing.append(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    if ground.config is None:
        missing.append(ClusterConfig(metadata=ObjectMeta(name=CLUSTER), spec=ClusterConfigSpec()))
    creates = tuple(Create(obj) for obj in missing)
    if ground.config is None or ground.config.deleting:
        return Plan(writes=creates)
    return _report(ground.config, judge(ground.config.spec), now, creates)


def judge(spec: ClusterConfigSpec) -> Verdict:
    """Whether a configuration can be used. Its schema has checked what a schema can."""
    never = {
        "resyncInterval": spec.resync_interval,
        "agent.leaseDuration": spec.agent.lease_duration,
        "agent.renewInterval": spec.agent.renew_interval,
    }
    wrong = [f"{field} is {value}: it must be above zero" for field, value in never.items() if not value.seconds]
    return Applied.INVALID("; ".join(wrong)) if wrong else Applied.APPLIED()


def _report(config: ClusterConfig, verdict: Verdict, now: datetime, creates: tuple[Create, ...]) -> Plan:
    invalid = verdict.reason == Applied.INVALID.code
    return Plan(
        writes=creates,
        status=PatchStatus(config, conditions.told(config, [verdict], now=now)),
        events=(PlanEvent(config, verdict.reason, verdict.message, warning=invalid),),
    )


def _the_cluster(obj: Resource) -> Iterable[Key]:
    """Other namespaces do not concern us."""
    return (THE_CLUSTER,) if obj.name in (NAMESPACE, CLUSTER) else ()


CLUSTER_CONTROLLER = Controller(
    name="cluster",
    watches=(Watch(ClusterConfig, _the_cluster), Watch(Namespace, _the_cluster)),
    observe=observe,
    decide=decide,
    always=(THE_CLUSTER,),
    workers=1,
)
