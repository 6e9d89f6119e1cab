"""The BrokerConfig ``broker``: there is always one, the broker uses it, and its status says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.api import conditions
from quorate.api.conditions import Verdict
from quorate.api.conditions.maintenance import Applied
from quorate.api.maintenance import BrokerConfig
from quorate.api.maintenance.broker_config import BrokerConfigSpec
from quorate.api.meta import ObjectMeta
from quorate.api.names import BROKER
from quorate.engine import NOTHING, Controller, Create, Key, PatchStatus, Plan, PlanEvent, Reader, Watch

THE_CONFIG: Final = Key("", BROKER)
_AT_ONCE: Final = 0.001


@dataclass(frozen=True, slots=True)
class ConfigView:
    """The configuration as it is written, and the one that is used."""

    config: BrokerConfig | None
    used: BrokerConfigSpec


def judge(spec: BrokerConfigSpec) -> Verdict:
    """Whether a configuration can be used. Its schema has checked what a schema can."""
    positive = {
        "defaultRetryTime": spec.default_retry_time,
        "defaultPermissionDuration": spec.default_permission_duration,
        "monitorConfig.updateInterval": spec.monitor_config.update_interval,
        "logConfig.ttl": spec.log_config.ttl,
    }
    wrong = [f"{field} is {value}: it must be above zero" for field, value in positive.items() if not value.seconds]
    return Applied.INVALID("; ".join(wrong)) if wrong else Applied.APPLIED()


def config_controller(
    used: Callable[[], BrokerConfigSpec], configure: Callable[[BrokerConfigSpec], None]
) -> Controller[Any]:
    """``used`` is the configuration in force, ``configure`` replaces it."""

    def observe(reader: Reader, _: Key) -> ConfigView:
        return ConfigView(reader.get(BrokerConfig, BROKER), used())

    def decide(view: ConfigView, now: datetime, _: Random) -> Plan:
        if view.config is None:
            return Plan(writes=(Create(BrokerConfig(metadata=ObjectMeta(name=BROKER), spec=view.used)),))
        if view.config.deleting:
            return NOTHING  # made anew once it is gone, with what is used
        verdict = judge(view.config.spec)
        if verdict.reason == Applied.APPLIED.code and view.config.spec != view.used:
            # The next pass finds it in use, and says so.
            return Plan(effects=(partial(configure, view.config.spec),), requeue_after=_AT_ONCE)
        return _report(view.config, verdict, now)

    return Controller(
        name="broker-config",
        watches=(Watch(BrokerConfig),),
        observe=observe,
        decide=decide,
        always=(THE_CONFIG,),
        workers=1,
    )


def _report(config: BrokerConfig, verdict: Verdict, now: datetime) -> Plan:
    invalid = verdict.reason == Applied.INVALID.code
    return Plan(
        status=PatchStatus(config, conditions.told(config, [verdict], now=now)),
        events=(PlanEvent(config, verdict.reason, verdict.message, warning=invalid),),
    )
