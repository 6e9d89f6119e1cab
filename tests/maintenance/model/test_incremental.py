"""Whatever happened, in whatever order: the model is as if it had been built from what is true now."""

from __future__ import annotations

from typing import Any, Protocol

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.maintenance.action import ActionType, AvailabilityMode, HostState, TenantPolicy
from quorate.api.maintenance.broker_config import BrokerConfigSpec, Limits
from quorate.maintenance.entries import NotificationEntry, PermissionEntry, RequestEntry
from quorate.maintenance.messages import Action
from quorate.maintenance.model import ClusterModel
from quorate.maintenance.model.counters import UNTOUCHED, NodeCounter
from quorate.maintenance.model.items import Item, VDiskItem
from quorate.maintenance.nouns import (
    DriveId,
    DriveInfo,
    GroupInfo,
    MemberFacts,
    NodeInfo,
    Ring,
    Rings,
    Species,
    VDiskId,
    VDiskInfo,
    VolumeFacts,
)
from quorate.maintenance.rules import evaluate

NODES, DRIVES, GROUPS = (1, 2, 3, 4), (1, 2), (0, 1, 2)
CONFIG = BrokerConfigSpec(
    cluster_limits=Limits(disabled_nodes_limit=2), tenant_limits=Limits(disabled_nodes_ratio_limit=50)
)
STATES = st.sampled_from([HostState.UP, HostState.UP, HostState.DOWN, HostState.RESTART, HostState.UNKNOWN])
MOMENTS = st.integers(0, 20)

nodes = st.builds(
    lambda number, host, tenant, state, services, down: NodeInfo(
        id=number,
        host=host,
        tenant=tenant,
        state=state,
        services=services,
        surely_down=down and state is HostState.DOWN,
    ),
    st.sampled_from(NODES),
    st.sampled_from(["a", "b", "3"]),
    st.sampled_from(["", "red", "blue"]),
    STATES,
    st.sampled_from([("storage",), ("dynnode",)]),
    st.booleans(),
)
drive_ids = st.builds(DriveId, st.sampled_from(NODES), st.sampled_from(DRIVES))
drives = st.builds(
    lambda drive, state, path: DriveInfo(id=drive, state=state, path=path),
    drive_ids,
    STATES,
    st.sampled_from(["/x", "/y"]),
)


@st.composite
def groups(draw: st.DrawFn) -> GroupInfo:
    number, generation = draw(st.sampled_from(GROUPS)), draw(st.sampled_from([1, 1, 2]))
    places = draw(st.lists(drive_ids, max_size=4, unique=True))
    parts = tuple(
        VDiskInfo(
            id=VDiskId(number, generation, 0, domain, 0),
            node=place.node,
            drives=(place,) if draw(st.integers(0, 4)) else (),
            state=draw(STATES),
        )
        for domain, place in enumerate(places)
    )
    if draw(st.booleans()):
        return GroupInfo(id=number, generation=generation, species=Species.BLOCK_4_2, vdisks=parts)
    members = [
        MemberFacts(vdisk=part.id, node=part.node, voter=True, up_to_date=True, connected=True) for part in parts
    ]
    hidden = VDiskId(number, generation, 0, 9, 0)
    members.append(
        MemberFacts(vdisk=hidden, node=draw(st.sampled_from(NODES)), voter=False, up_to_date=False, connected=True)
    )
    facts = VolumeFacts(
        name=f"v{number}",
        members=tuple(members),
        quorum=2,
        quorum_minimum_redundancy=1,
        unconfirmed_step=draw(st.sampled_from(["", "step"])),
    )
    return GroupInfo(id=number, generation=generation, species=None, volume=facts, vdisks=parts)


devices = st.one_of(
    st.builds(str, drive_ids),
    st.builds(str, st.builds(VDiskId, st.sampled_from(GROUPS), st.just(1), st.just(0), st.integers(0, 3), st.just(0))),
    st.sampled_from(["/x", "/y"]),
)
actions = st.one_of(
    st.builds(
        lambda host, tenant, duration: Action(
            type=ActionType.SHUTDOWN_HOST, host=host, tenant=tenant if not host else "", duration=duration
        ),
        st.sampled_from(["a", "b", "3", "1", ""]),
        st.sampled_from(["red", "blue"]),
        st.sampled_from([None, 3]),
    ),
    st.builds(
        lambda host, service: Action(type=ActionType.RESTART_SERVICES, host=host, services=(service,), duration=2),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["storage", "dynnode"]),
    ),
    st.builds(
        lambda host, named: Action(type=ActionType.REPLACE_DEVICES, host=host, devices=tuple(named), duration=2),
        st.sampled_from(["a", "1"]),
        st.lists(devices, min_size=1, max_size=3),
    ),
)
permissions = st.builds(
    lambda number, action, deadline: PermissionEntry(
        id=f"u-p-{number}", order=number, owner="u", action=action, deadline=deadline, granted_at=0
    ),
    st.integers(1, 3),
    actions,
    MOMENTS,
)
notifications = st.builds(
    lambda number, named, time: NotificationEntry(
        id=f"u-n-{number}", order=number, owner="u", actions=tuple(named), time=time, reason=""
    ),
    st.integers(1, 2),
    st.lists(actions, min_size=1, max_size=2),
    MOMENTS,
)


def request(number: int, named: list[Action], priority: int = 0, *, partial: bool = True) -> RequestEntry:
    return RequestEntry(
        id=f"u-r-{number}",
        order=number,
        owner="u",
        actions=tuple(named),
        partial_permission_allowed=partial,
        reason="",
        duration=None,
        tenant_policy=TenantPolicy.DEFAULT,
        availability_mode=AvailabilityMode.KEEP_AVAILABLE,
        priority=priority,
        stored_at=0,
        renewed_at=0,
        last_deadline=0,
    )


requests = st.builds(
    request, st.integers(1, 2), st.lists(actions, min_size=1, max_size=3), st.sampled_from([0, 0, -1, 1])
)
rings = st.one_of(
    st.none(),
    st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True).map(
        lambda found: Rings(1, tuple(Ring((node,)) for node in found))
    ),
)

steps = st.one_of(
    st.tuples(st.just("put_node"), nodes),
    st.tuples(st.just("remove_node"), st.sampled_from(NODES)),
    st.tuples(st.just("put_drive"), drives),
    st.tuples(st.just("remove_drive"), drive_ids),
    st.tuples(st.just("put_group"), groups()),
    st.tuples(st.just("remove_group"), st.sampled_from(GROUPS)),
    st.tuples(st.just("vdisk_state"), st.tuples(st.sampled_from(GROUPS), st.integers(0, 3), STATES)),
    st.tuples(st.just("set_rings"), rings),
    st.tuples(st.just("hold"), permissions),
    st.tuples(st.just("release"), st.integers(1, 3).map("u-p-{}".format)),
    st.tuples(st.just("announce"), notifications),
    st.tuples(st.just("withdraw"), st.integers(1, 2).map("u-n-{}".format)),
    st.tuples(st.just("queue"), st.tuples(requests, st.booleans())),
    st.tuples(st.just("dequeue"), st.integers(1, 2).map("u-r-{}".format)),
    st.tuples(st.just("advance"), MOMENTS),
)


class Entry(Protocol):
    @property
    def id(self) -> Any: ...


class Truth:
    """What is true in the end, kept as plainly as can be."""

    def __init__(self) -> None:
        self.known: dict[str, dict[Any, Any]] = {}
        self.blocking: dict[str, bool] = {}
        self.rings: Rings | None = None
        self.now = 0

    def apply(self, model: ClusterModel, step: tuple[str, Any]) -> None:
        """To the model, and to itself."""
        name, value = step
        match name:
            case "vdisk_state":
                self._vdisk_state(model, *value)
            case "set_rings":
                self.rings = value
                model.set_rings(value)
            case "advance":
                self.now = value
                model.advance(value)
            case "queue":
                entry, blocking = value
                self._put("queue", entry)
                self.blocking[entry.id] = blocking
                model.queue(entry, blocking=blocking)
            case "remove_node" | "remove_drive" | "remove_group" | "release" | "withdraw" | "dequeue":
                self.known.get(PUT[name], {}).pop(value, None)
                getattr(model, name)(value)
            case _:
                self._put(name, value)
                getattr(model, name)(value)

    def rebuilt(self) -> ClusterModel:
        """From nothing, each thing once, replicas first: so that everything is referred to before it is known."""
        model = ClusterModel(CONFIG)
        model.advance(self.now)
        for name in ("hold", "announce", "put_group", "put_drive", "put_node"):
            for value in self.known.get(name, {}).values():
                getattr(model, name)(value)
        for entry in self.known.get("queue", {}).values():
            model.queue(entry, blocking=self.blocking[entry.id])
        model.set_rings(self.rings)
        return model

    def _put(self, name: str, entry: Entry) -> None:
        self.known.setdefault(name, {})[entry.id] = entry

    def _vdisk_state(self, model: ClusterModel, group: int, domain: int, state: HostState) -> None:
        info = model.group(group)
        if info is None or domain >= len(info.vdisks):
            return
        part = info.vdisks[domain]
        model.put_vdisk(VDiskInfo(id=part.id, node=part.node, drives=part.drives, state=state))
        changed = model.group(group)
        assert changed is not None
        assert changed.vdisks[domain].state is state
        self._put("put_group", changed)


PUT = {
    "remove_node": "put_node",
    "remove_drive": "put_drive",
    "remove_group": "put_group",
    "release": "hold",
    "withdraw": "announce",
    "dequeue": "queue",
}


def locks(item: Item) -> list[str]:
    return sorted(map(repr, (*item.locks.held, *item.locks.announced, *item.locks.queued))) if item.locks else []


def counted(counter: NodeCounter | None) -> object:
    if counter is None:
        return None
    return counter.size, {standing: sorted(found) for standing, found in counter.standings()}


def replica(vdisk: VDiskItem) -> object:
    return vdisk.info, vdisk.troubles, [(item.state, locks(item)) for item in (vdisk, *vdisk.drives, vdisk.node)]


def picture(model: ClusterModel) -> object:
    """Everything that an answer can depend on."""
    return (
        {group.info.id: (group.troubled, [replica(vdisk) for vdisk in group.members]) for group in model.group_items()},
        [counted(counter) for counter in (model.cluster, model.counter_of("red"), model.counter_of("blue"))],
        {info.id: (info, sorted(model.vdisks_of(info.id), key=lambda vdisk: vdisk.id)) for info in model.nodes()},
        {
            # Also those that are only heard of: they are there as long as something refers to them, and no longer.
            node: (locks(item), item.standing, item.rings, sorted(item.guests), sorted(item.drives))
            for node, item in model._nodes.items()
        },
        {info.id: info for node in NODES for info in model.drives_of(node)},
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=30))
def test_events_and_locks_in_any_order_give_what_building_anew_gives(history: list[tuple[str, Any]]) -> None:
    truth, model = Truth(), ClusterModel(CONFIG)
    for step in history:
        truth.apply(model, step)
    assert picture(model) == picture(truth.rebuilt())


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=25), st.lists(actions, max_size=5), st.booleans(), MOMENTS)
def test_asking_gives_the_same_answer_as_of_a_new_model_and_changes_nothing(
    history: list[tuple[str, Any]], named: list[Action], partial: bool, now: int
) -> None:
    truth, model = Truth(), ClusterModel(CONFIG)
    for step in history:
        truth.apply(model, step)
    before = picture(model)
    asked = request(9, named, partial=partial)
    answer = evaluate(model, asked, now)
    assert answer.code is evaluate(truth.rebuilt(), asked, now).code
    model.advance(truth.now)
    assert picture(model) == before


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=30))
def test_troubles_are_counted_as_a_look_at_everything_counts_them(history: list[tuple[str, Any]]) -> None:
    truth, model = Truth(), ClusterModel(CONFIG)
    for step in history:
        truth.apply(model, step)
    for group in model.group_items():
        for vdisk in group.members:
            assert vdisk.troubles == sum(item.is_trouble() for item in (vdisk, *vdisk.drives, vdisk.node))
        assert group.troubled == sum(vdisk.troubles > 0 for vdisk in group.members)
    for info in model.nodes():
        item = model.known_node(info.id)
        assert item.standing == item.standing_at(truth.now)
        for counter in item.counters:
            found = dict(counter.standings()).get(item.standing, {})
            assert (item.standing == UNTOUCHED) or item.id in found
    assert model.cluster.size == len(list(model.nodes()))
