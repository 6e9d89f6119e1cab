"""The values that the whole cluster agrees on, taken over by an agent as they change: no restart is needed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

from quorate.agent.lease import Heartbeat
from quorate.agent.node import Node
from quorate.api.cluster_config import AgentSettings, ClusterConfig, ClusterConfigSpec
from quorate.api.names import CLUSTER
from quorate.engine import NOTHING, Controller, Key, Plan, Reader, Watch
from quorate.engine.logs import get_logger

log = get_logger(__name__)

_THE_CLUSTER = Key("", CLUSTER)
_DEFAULTS = ClusterConfigSpec()


@dataclass(frozen=True, slots=True)
class Values:
    """What an agent takes from the ClusterConfig; the defaults stand while there is none."""

    timings: AgentSettings
    silence: float

    @classmethod
    def of(cls, config: ClusterConfig | None) -> Values:
        """The values of a configuration. One that would keep an agent from working is not taken over."""
        spec = config.spec if config is not None else _DEFAULTS
        timings, command = spec.agent, spec.timeouts.command
        if not 0 < timings.renew_interval.seconds < timings.lease_duration.seconds:
            timings = _DEFAULTS.agent
        return cls(timings, (command if command.seconds > 0 else _DEFAULTS.timeouts.command).seconds)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is intended, and what is in force."""

    intended: Values
    in_force: Values


def controllers(node: Node, heartbeat: Heartbeat) -> tuple[Controller[Any], ...]:
    """One controller, which wakes when the ClusterConfig changes."""

    def observe(reader: Reader, _: Key) -> Seen:
        intended = Values.of(reader.get(ClusterConfig, CLUSTER))
        return Seen(intended, Values(heartbeat.timings, node.hands.silence))

    def decide(seen: Seen, _now: datetime, _random: Random) -> Plan:
        if seen.intended == seen.in_force:
            return NOTHING
        return Plan(effects=(partial(adopt, node, heartbeat, seen.intended),))

    return (
        Controller(
            name="agent-settings",
            watches=(Watch(ClusterConfig),),
            observe=observe,
            decide=decide,
            always=(_THE_CLUSTER,),
            workers=1,
        ),
    )


def adopt(node: Node, heartbeat: Heartbeat, values: Values) -> None:
    """Let these hold from now on."""
    heartbeat.timings = values.timings
    node.hands.silence = values.silence
    log.info(
        "cluster settings taken over",
        lease_duration=values.timings.lease_duration.text,
        renew_interval=values.timings.renew_interval.text,
        silence=values.silence,
    )
