"""Where the secret of a volume is kept: in a Secret that only its members' agents may read, or in status (M19).

``ClusterConfig.spec.drbd.sharedSecrets`` says which. With ``Secret`` the fields ``sharedSecret`` of the volume and of
its replicas hold the Secret's name (``names.shared_secret``), with ``Status`` the value itself. One key per volume:

| mode   | the volume's field | the Secret   | done                                                                 |
|--------|--------------------|--------------|----------------------------------------------------------------------|
| Secret | empty              | not there    | made, with a new value, before the members are introduced            |
| Secret | a value            | not there    | made, with that value                                                |
| Secret | a value            | the same     | the field gets its name: no member reconnects, the value is the same |
| Secret | its name           | not there,   | made, if no member was ever told it; otherwise it is lost: members   |
|        |                    | or no value  | go on, and agents that need it say so (``SecretUnreadable``). Who    |
|        |                    |              | may read it is kept in step meanwhile                                |
| Status | its name           | there        | the field gets the value                                             |
| Status | a value            | there        | deleted, when no replica's config names it any more                  |
| any    | no volume          | there        | deleted                                                              |

Who may read it is a RoleBinding of the same name: the agents of the members, kept in step. An agent that is known by
the service account that all agents share is named by that: such agents cannot be told apart when they read.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from quorate.api import finalizers, labels, names
from quorate.api.cluster_config import ClusterConfig, ClusterConfigSpec, SharedSecrets
from quorate.api.core import Role, RoleBinding, SecretObject
from quorate.api.core.secret_object import PolicyRule, RoleRef, Subject
from quorate.api.groups import RBAC
from quorate.api.meta import ObjectMeta, Resource, VolumeName
from quorate.api.secret import Secret
from quorate.api.storage import ReplicatedVolume, ReplicatedVolumeReplica
from quorate.api.struct import replace
from quorate.engine import (
    NOTHING,
    Controller,
    Create,
    Delete,
    Key,
    Patch,
    PatchStatus,
    Plan,
    Reader,
    ReleaseFinalizer,
    Selection,
    Signal,
    Watch,
    Write,
)
from quorate.engine.selectors import match
from quorate.volumes.observe import REPLICAS_INDEX, REPLICAS_OF
from quorate.volumes.volume.secrets import new_secret

#: What the leader keeps of these kinds: not every Secret of a cluster.
SELECTION: Final = Selection(namespace=names.NAMESPACE, labels=match({labels.SHARED_SECRET: "drbd"}))
KEPT: Final[tuple[type[Resource], ...]] = (SecretObject, Role, RoleBinding)
#: The key that stands for all volumes; no volume has its namespace.
_EVERYTHING: Final = Key("every", "volume")
_DATA: Final = names.SECRET_KEY
_ACCOUNT: Final = Subject(kind="ServiceAccount", name="quorate-agent", namespace=names.NAMESPACE)


@dataclass(frozen=True, slots=True)
class Keeping:
    """A volume's secret, and what there is of it."""

    volume: VolumeName
    rv: ReplicatedVolume | None
    replicas: tuple[ReplicatedVolumeReplica, ...]
    secret: SecretObject | None
    role: Role | None
    binding: RoleBinding | None
    mode: SharedSecrets

    @property
    def name(self) -> str:
        """What all three are called."""
        return names.shared_secret(self.volume)


def observe(reader: Reader, key: Key) -> Keeping | None:
    """Gather what matters for a volume."""
    volume = VolumeName(key.name)
    name = names.shared_secret(volume)
    found = reader.get(ClusterConfig, names.CLUSTER)
    keeping = Keeping(
        volume,
        reader.get(ReplicatedVolume, volume),
        reader.find(ReplicatedVolumeReplica, REPLICAS_OF, volume),
        reader.get(SecretObject, name, names.NAMESPACE),
        reader.get(Role, name, names.NAMESPACE),
        reader.get(RoleBinding, name, names.NAMESPACE),
        (ClusterConfigSpec() if found is None else found.spec).drbd.shared_secrets,
    )
    return None if keeping.rv is None and not _objects(keeping) else keeping


def decide(keeping: Keeping, _: datetime, random: Random) -> Plan:
    """One step."""
    rv = keeping.rv
    if rv is None:
        return _plan(_taken_away(keeping))
    given = rv.status.drbd.config.shared_secret
    refers = given is not None and given.reveal() == keeping.name
    if keeping.mode is SharedSecrets.STATUS:
        if refers and (value := _value(keeping.secret)) is not None:
            return Plan(writes=(_told(rv, value),))
        if refers or given is None or _is_named(keeping):
            return NOTHING
        return _plan(_taken_away(keeping))
    if rv.deleting:
        return NOTHING  # what there is goes with it
    if (
        refers
        and _value(keeping.secret) is None
        and any(each.status.datamesh_revision > 1 for each in keeping.replicas)
    ):
        # Another value would part the members; those who need it say that it is gone, and read it when it is back.
        return _plan(_readers(keeping))
    if keeping.secret is not None and keeping.secret.deleting and given is None:
        # Of an earlier volume of that name.
        return Plan(writes=(ReleaseFinalizer(keeping.secret, finalizers.CONTROLLER, after=()),))
    value = _value(keeping.secret)
    if given is not None and not refers and value == given:
        return Plan(writes=(*_readers(keeping), _told(rv, Secret(keeping.name))))
    wanted = given if given is not None and not refers else value
    return _plan((*_kept(keeping, wanted or new_secret(random)), *_readers(keeping)))


def encoded(value: Secret) -> Secret:
    """As a Secret holds it."""
    return Secret(base64.b64encode(value.reveal().encode()).decode())


def _value(secret: SecretObject | None) -> Secret | None:
    return None if secret is None else names.secret_value(secret.data)


def _kept(keeping: Keeping, value: Secret) -> Iterable[Write]:
    data = {_DATA: encoded(value)}
    if keeping.secret is None:
        yield Create(SecretObject(metadata=_metadata(keeping, finalizers.CONTROLLER), data=data))
    elif _value(keeping.secret) != value:
        yield Patch(keeping.secret, replace(keeping.secret, data=data))


def _readers(keeping: Keeping) -> Iterable[Write]:
    assert keeping.rv is not None
    if keeping.binding is None and not keeping.rv.status.datamesh.members:
        return  # nobody has been told of it yet
    if keeping.role is None:
        rule = PolicyRule(api_groups=("",), resources=("secrets",), resource_names=(keeping.name,), verbs=("get",))
        yield Create(Role(metadata=_metadata(keeping), rules=(rule,)))
    nodes = sorted({member.node_name for member in keeping.rv.status.datamesh.members})
    users = (Subject(kind="User", api_group=RBAC.name, name=names.agent_user(node)) for node in nodes)
    subjects = (*users, _ACCOUNT)
    if keeping.binding is None:
        role = RoleRef(api_group=RBAC.name, kind="Role", name=keeping.name)
        yield Create(RoleBinding(metadata=_metadata(keeping), role_ref=role, subjects=subjects))
    elif keeping.binding.subjects != subjects:
        yield Patch(keeping.binding, replace(keeping.binding, subjects=subjects))


def _metadata(keeping: Keeping, *held_by: str) -> ObjectMeta:
    given = {labels.SHARED_SECRET: "drbd", labels.REPLICATED_VOLUME: labels.value(keeping.volume)}
    return ObjectMeta(name=keeping.name, namespace=names.NAMESPACE, labels=given, finalizers=held_by)


def _told(rv: ReplicatedVolume, value: Secret) -> PatchStatus:
    drbd = rv.status.drbd
    drbd = replace(drbd, config=replace(drbd.config, shared_secret=value))
    return PatchStatus(rv, replace(rv, status=replace(rv.status, drbd=drbd)), if_unchanged=True)


def _is_named(keeping: Keeping) -> bool:
    """Whether a member is still told to look for the Secret."""
    configs = (each.status.drbd.config.shared_secret for each in keeping.replicas)
    return any(secret is not None and secret.reveal() == keeping.name for secret in configs)


def _taken_away(keeping: Keeping) -> Iterable[Write]:
    for found in _objects(keeping):
        if not found.deleting:
            yield Delete(found)
        elif isinstance(found, SecretObject):
            yield ReleaseFinalizer(found, finalizers.CONTROLLER, after=())


def _objects(keeping: Keeping) -> tuple[Resource, ...]:
    return tuple(found for found in (keeping.binding, keeping.role, keeping.secret) if found is not None)


def _plan(writes: Iterable[Write]) -> Plan:
    found = tuple(writes)
    return Plan(writes=found) if found else NOTHING


def _of_volume(rv: ReplicatedVolume) -> Iterable[Key]:
    return (Key("", rv.name),)


def _matters(before: ReplicatedVolume | None, after: ReplicatedVolume | None) -> bool:
    return before is None or after is None or _looked_at(before) != _looked_at(after)


def _looked_at(rv: ReplicatedVolume) -> tuple[object, ...]:
    members = [member.node_name for member in rv.status.datamesh.members]
    return rv.status.drbd.config.shared_secret, members, rv.deleting


def _of_replica(replica: ReplicatedVolumeReplica) -> Iterable[Key]:
    return (Key("", replica.spec.replicated_volume_name),)


def _is_told_another(before: ReplicatedVolumeReplica | None, after: ReplicatedVolumeReplica | None) -> bool:
    told = [None if each is None else each.status.drbd.config.shared_secret for each in (before, after)]
    return told[0] != told[1]


def _of_object(obj: Resource) -> Iterable[Key]:
    volume = names.volume_of_shared_secret(obj.name)
    return () if volume is None or obj.namespace != names.NAMESPACE else (Key("", volume),)


def shared_secrets() -> Controller[Any]:
    """What the manager runs. Where the mode changes, every volume is looked at."""
    signal = Signal()

    def observe_any(reader: Reader, key: Key) -> Keeping | tuple[str, ...] | None:
        if key == _EVERYTHING:
            return tuple(volume.name for volume in reader.list(ReplicatedVolume))
        return observe(reader, key)

    def decide_any(seen: Keeping | tuple[str, ...], now: datetime, random: Random) -> Plan:
        if isinstance(seen, tuple):
            return Plan(effects=tuple(partial(signal.wake, Key("", name)) for name in seen))
        return decide(seen, now, random)

    return Controller(
        name="shared-secret",
        watches=(
            Watch(ReplicatedVolume, _of_volume, when=_matters),
            Watch(ReplicatedVolumeReplica, _of_replica, when=_is_told_another),
            Watch(SecretObject, _of_object),
            Watch(Role, _of_object),
            Watch(RoleBinding, _of_object),
            Watch(ClusterConfig, lambda _: (_EVERYTHING,), when=_mode_changed),
        ),
        observe=observe_any,
        decide=decide_any,
        indexes=(REPLICAS_INDEX,),
        signals=(signal,),
    )


def _mode_changed(before: ClusterConfig | None, after: ClusterConfig | None) -> bool:
    modes = [SharedSecrets.SECRET if each is None else each.spec.drbd.shared_secrets for each in (before, after)]
    return modes[0] is not modes[1]
