"""Transitions as data: which steps each is made of.

| transition             | steps                                                                                      |
|------------------------|--------------------------------------------------------------------------------------------|
| AddReplica, diskful    | Join, Connect, Synchronize, (HideTieBreaker), Show, (ShowTieBreaker)                       |
| AddReplica, diskless   | Join, Connect, (ShowTieBreaker)                                                            |
| RemoveReplica          | (HideTieBreaker), Hide, TakeDown, Forget, Settle or (ShowTieBreaker)                        |
| ForceRemoveReplica     | GiveWay, (HideTieBreaker), HandOver, LowerRedundancy, Hide, Forget, Settle or              |
|                        | (ShowTieBreaker)                                                                           |
| ChangeReplicaType      | Access and tie-breaker: Retype. With or from a disk: as a removal, then as an addition      |
| ChangeQuorum           | SetRedundancy                                                                              |
| ForceDetach            | Detach                                                                                     |
| Attach, Detach         | Promote; Demote                                                                            |
| Enable-, DisableMultiattach | AllowTwoPrimaries; ForbidTwoPrimaries                                                 |
| ResizeVolume           | Resize                                                                                     |

In brackets: where the layout has a tie-breaker. Around every change of the number of voters it is hidden first and
shown last, if their number is then even. A tie-breaker that is replaced: the new one joins hidden and is shown by the
last step of the old one's removal, so never two are shown. GiveWay changes nothing unless a copy that is up is given up
for another that it stands in the way of; HandOver, unless it was the last with a vote (decision 0017).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from quorate.api.storage.datamesh import TransitionGroup, TransitionType
from quorate.api.storage.drbd import ReplicaType
from quorate.volumes.attach import changes as attach
from quorate.volumes.attach import guards as attach_guards
from quorate.volumes.resize import growth
from quorate.volumes.transitions import changes, guards
from quorate.volumes.transitions.rules import Rule, nobody

JOIN: Final = Rule("Join", changes.join, guards.may_join)
CONNECT: Final = Rule("Connect", changes.connect, done=guards.may_not_be_connected)
SYNCHRONIZE: Final = Rule("Synchronize", changes.unchanged, done=guards.is_behind, syncs=True)
SHOW: Final = Rule("Show", changes.show, guards.may_count, votes=True)
HIDE: Final = Rule("Hide", changes.hide, guards.may_leave, votes=True)
TAKE_DOWN: Final = Rule("TakeDown", changes.take_down)
FORGET: Final = Rule("Forget", changes.forget, guards.may_be_forgotten, votes=True)
SETTLE: Final = Rule("Settle", changes.settle)
HIDE_TIE_BREAKER: Final = Rule("HideTieBreaker", changes.hide_tie_breaker, guards.may_change_tie_breaker, votes=True)
SHOW_TIE_BREAKER: Final = Rule("ShowTieBreaker", changes.show_tie_breaker, guards.may_show_tie_breaker, votes=True)
RETYPE: Final = Rule("Retype", changes.retype)
GIVE_WAY: Final = Rule("GiveWay", changes.give_way, guards.may_give_way)
HAND_OVER: Final = Rule("HandOver", changes.hand_over, guards.may_hand_over, guards.not_handed_over, votes=True)
LOWER_REDUNDANCY: Final = Rule("LowerRedundancy", changes.lower_redundancy, guards.may_leave, votes=True)
SET_REDUNDANCY: Final = Rule("SetRedundancy", changes.set_redundancy, guards.may_set_redundancy, votes=True)
DETACH: Final = Rule(
    "ForceDetach", changes.detach, guards.may_detach, attach_guards.not_demoted, must_know=nobody, beside=True
)
PROMOTE: Final = Rule(
    "Promote", attach.attach, attach_guards.may_attach, attach_guards.not_primary_yet, must_know=nobody, beside=True
)
DEMOTE: Final = Rule(
    "Demote", attach.detach, done=attach_guards.still_primary, must_know=guards.who_lets_go, beside=True
)
ALLOW_TWO_PRIMARIES: Final = Rule("AllowTwoPrimaries", attach.allow_two, attach_guards.may_allow_two)
FORBID_TWO_PRIMARIES: Final = Rule("ForbidTwoPrimaries", attach.forbid_two, attach_guards.may_forbid_two)
RESIZE: Final = Rule("Resize", growth.grow, growth.may_grow, growth.is_smaller)

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            JOIN,
            CONNECT,
            SYNCHRONIZE,
            SHOW,
            HIDE,
            TAKE_DOWN,
            FORGET,
            SETTLE,
            HIDE_TIE_BREAKER,
            SHOW_TIE_BREAKER,
            RETYPE,
            GIVE_WAY,
            HAND_OVER,
            LOWER_REDUNDANCY,
            SET_REDUNDANCY,
            DETACH,
            PROMOTE,
            DEMOTE,
            ALLOW_TWO_PRIMARIES,
            FORBID_TWO_PRIMARIES,
            RESIZE,
        )
    }
)

_DISKFUL = ReplicaType.DISKFUL


def steps_of(
    kind: TransitionType,
    *,
    before: ReplicaType | None = None,
    after: ReplicaType | None = None,
    tie_breaker: bool = False,
) -> tuple[Rule, ...]:
    """The steps of a transition. ``tie_breaker``: the layout has one."""
    return tuple(_steps(kind, before, after, tie_breaker))


def group_of(
    kind: TransitionType, before: ReplicaType | None, after: ReplicaType | None, *, tie_breaker: bool
) -> TransitionGroup:
    """Which transitions it may run beside."""
    match kind:
        case TransitionType.CHANGE_QUORUM:
            return TransitionGroup.QUORUM
        case TransitionType.FORCE_REMOVE_REPLICA:
            return TransitionGroup.EMERGENCY
        case TransitionType.FORCE_DETACH | TransitionType.ATTACH | TransitionType.DETACH:
            return TransitionGroup.ATTACHMENT
        case TransitionType.ENABLE_MULTIATTACH | TransitionType.DISABLE_MULTIATTACH:
            return TransitionGroup.MULTIATTACH
        case TransitionType.RESIZE_VOLUME:
            return TransitionGroup.RESIZE
    votes = any(rule.votes for rule in steps_of(kind, before=before, after=after, tie_breaker=tie_breaker))
    voting = _DISKFUL in (before, after) or (votes and tie_breaker)
    return TransitionGroup.VOTING_MEMBERSHIP if voting else TransitionGroup.NON_VOTING_MEMBERSHIP


def _steps(
    kind: TransitionType, before: ReplicaType | None, after: ReplicaType | None, tie_breaker: bool
) -> Iterator[Rule]:
    match kind:
        case TransitionType.ADD_REPLICA:
            yield from _joining(after, tie_breaker)
        case TransitionType.REMOVE_REPLICA:
            yield from _leaving(before, tie_breaker, (HIDE, TAKE_DOWN))
            yield SHOW_TIE_BREAKER if tie_breaker else SETTLE
        case TransitionType.FORCE_REMOVE_REPLICA:
            if before is _DISKFUL:
                yield GIVE_WAY
            going = (HAND_OVER, LOWER_REDUNDANCY, HIDE) if before is _DISKFUL else (HIDE,)
            yield from _leaving(before, tie_breaker, going)
            yield SHOW_TIE_BREAKER if tie_breaker else SETTLE
        case TransitionType.CHANGE_REPLICA_TYPE if _DISKFUL in (before, after):
            yield from _leaving(before, tie_breaker, (HIDE, TAKE_DOWN))
            yield SETTLE
            yield from _joining(after, tie_breaker)
        case TransitionType.CHANGE_REPLICA_TYPE:
            yield RETYPE
            if tie_breaker:
                yield SHOW_TIE_BREAKER
        case TransitionType.CHANGE_QUORUM:
            yield SET_REDUNDANCY
        case TransitionType.FORCE_DETACH:
            yield DETACH
        case TransitionType.ATTACH:
            yield PROMOTE
        case TransitionType.DETACH:
            yield DEMOTE
        case TransitionType.ENABLE_MULTIATTACH:
            yield ALLOW_TWO_PRIMARIES
        case TransitionType.DISABLE_MULTIATTACH:
            yield FORBID_TWO_PRIMARIES
        case TransitionType.RESIZE_VOLUME:
            yield RESIZE
        case _:
            raise ValueError(f"{kind} is not a transition of members")


def _joining(kind: ReplicaType | None, tie_breaker: bool) -> Iterator[Rule]:
    yield from (JOIN, CONNECT)
    if kind is _DISKFUL:
        yield SYNCHRONIZE
        if tie_breaker:
            yield HIDE_TIE_BREAKER
        yield SHOW
    if tie_breaker:
        yield SHOW_TIE_BREAKER


def _leaving(kind: ReplicaType | None, tie_breaker: bool, going: tuple[Rule, ...]) -> Iterator[Rule]:
    if kind is _DISKFUL and tie_breaker:
        yield HIDE_TIE_BREAKER
    yield from going
    yield FORGET
