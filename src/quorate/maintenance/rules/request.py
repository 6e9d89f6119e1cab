"""A whole request, action by action.

Every action that passes is taken before the next one is tried. Not partial: the first failure ends it, and nothing is
granted. Partial: whatever passes is granted, and if nothing does, the most hopeful of the failures is the answer.

Each action becomes a permission of its own, and whoever has several uses them in any order, one after another: the
first host may be back, with its users, before the next one goes. So for each action only its own hosts are away; those
of the others may go too, and may as well be there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import Final

from quorate.api.maintenance.action import AvailabilityMode, Issue, IssueType, StatusCode
from quorate.api.struct import replace
from quorate.maintenance.entries import RequestEntry
from quorate.maintenance.evaluation import Evaluation, Grant, Refusal
from quorate.maintenance.messages import Action
from quorate.maintenance.model.claims import rank
from quorate.maintenance.model.cluster import ClusterModel
from quorate.maintenance.model.items import Item, NodeItem
from quorate.maintenance.model.lookup import Unresolved, find
from quorate.maintenance.model.trial import Trial
from quorate.maintenance.rules.checks import take
from quorate.maintenance.rules.inquiry import Inquiry
from quorate.maintenance.rules.obstacles import MAX_MESSAGE, Objection

#: The most hopeful first. A missing service ranks as a temporary refusal does: of the two the first to fail stays.
_HOPE: Final = {
    StatusCode.DISALLOW_TEMP: 0,
    StatusCode.NO_SUCH_SERVICE: 0,
    StatusCode.ERROR_TEMP: 1,
    StatusCode.DISALLOW: 2,
    StatusCode.WRONG_REQUEST: 3,
    StatusCode.ERROR: 4,
    StatusCode.NO_SUCH_HOST: 5,
    StatusCode.NO_SUCH_DEVICE: 6,
}
#: What is worth keeping: it may be granted later.
_TEMPORARY: Final = frozenset({StatusCode.DISALLOW_TEMP, StatusCode.ERROR_TEMP})
#: A stored request says why for so many of its actions.
_MAX_ISSUES: Final = 100
#: Work that was done; sent True, what is left of a partial request is put off. The answer in the end.
Steps = Generator[int, bool | None, Evaluation]


def evaluate(model: ClusterModel, request: RequestEntry, now: int, *, max_permissions: int | None = None) -> Evaluation:
    """What of a request may be done now. The model stays as it is."""
    steps = evaluation_steps(model, request, now, max_permissions=max_permissions)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Evaluation = end.value
            return found


def evaluation_steps(
    model: ClusterModel, request: RequestEntry, now: int, *, max_permissions: int | None = None
) -> Steps:
    """The same, action by action: between two of them others may ask the model, but nobody may change it."""
    model.advance(now)
    inquiry = Inquiry(
        model,
        now,
        rank=rank(request),
        mode=request.availability_mode,
        partial=request.partial_permission_allowed,
        tenant_policy=request.tenant_policy,
    )
    actions = tuple(_expanded(model, request.actions))
    cap = max_permissions if inquiry.partial else None
    grants: dict[int, Grant] = {}
    refusals: list[Refusal] = []
    put_off: list[Refusal] = []
    enough = began = False
    for mode in _sweeps(inquiry):
        inquiry.mode, refusals, put_off = mode, [], []
        for number, action in enumerate(actions):
            if number in grants:
                continue
            if began:
                enough = bool((yield inquiry.work())) or enough
                model.advance(now)  # others may have asked about another moment
            began = True
            if enough:
                put_off.append(_put_off(inquiry, action))
                continue
            if cap is not None and len(grants) >= cap:
                refusals.append(_deferred(inquiry, action, cap))
                continue
            lasts = permission_duration(model, action, request.duration)
            inquiry.turn_to(action, permission_duration=lasts)
            refusal = attempt(inquiry, action)
            if refusal is None:
                grants[number] = Grant(action, lasts, _cost(inquiry))
                continue
            if not inquiry.partial:
                refusal = yield from _with_the_rest(inquiry, refusal, actions[number:])
                return _refused([refusal], left=_with_issues(actions, {number: refusal.issue}))
            refusals.append(refusal)
    # They come first the next time, else a cluster that never rests is asked about the same few again and again.
    refusals = [*put_off, *refusals]
    granted = tuple(grants[number] for number in sorted(grants))
    if not refusals:
        return Evaluation(StatusCode.ALLOW, reason=_costs(granted), grants=granted)
    issues = (refusal.issue for refusal in refusals[:_MAX_ISSUES])
    left = _with_issues([refusal.action for refusal in refusals], dict(enumerate(issues)))
    if granted:
        code, reason = StatusCode.ALLOW_PARTIAL, _costs(granted)
        return Evaluation(
            code, reason=reason, grants=granted, refusals=tuple(refusals), left=left, put_off=bool(put_off)
        )
    return _refused(refusals, left=left, put_off=bool(put_off))


def _sweeps(inquiry: Inquiry) -> tuple[AvailabilityMode, ...]:
    """By force, in part: first what needs none, so that force never gives less than what keeps all available."""
    if inquiry.partial and inquiry.forced:
        return AvailabilityMode.KEEP_AVAILABLE, AvailabilityMode.FORCE_RESTART
    return (inquiry.mode,)


def _cost(inquiry: Inquiry) -> str:
    """What an action spoils, each thing once, as far as there is room."""
    return _listed(dict.fromkeys(inquiry.costs), MAX_MESSAGE)


def _costs(grants: Sequence[Grant]) -> str:
    """Of all that is granted by force."""
    spoilt = [f"{grant.action.host or ', '.join(grant.action.devices)}: {grant.cost}" for grant in grants if grant.cost]
    return _listed([f"by force, at this cost: {spoilt[0]}", *spoilt[1:]], MAX_MESSAGE) if spoilt else ""


def _listed(words: Iterable[str], room: int) -> str:
    """At least the first, and how many more there are."""
    left = [*words]
    told = left.pop(0) if left else ""
    while left and len(told) + len(left[0]) + len("; and 1000 more") <= room:
        told = f"{told}; {left.pop(0)}"
    return told[:room] if not left else f"{told[: room - len('; and 1000 more')]}; and {len(left)} more"


def attempt(inquiry: Inquiry, action: Action) -> Refusal | None:
    """Take everything that an action is about, or nothing."""
    items = find(inquiry.model, action)
    if isinstance(items, Unresolved):
        return Refusal(action, items.code, Issue(message=items.message))
    objection = take_all(inquiry, items)
    return None if objection is None else objection.refusal(action)


def take_all(inquiry: Inquiry, items: Sequence[Item]) -> Objection | None:
    """Take these items, or none of them."""
    inquiry.leaving = frozenset(item.id for item in items if isinstance(item, NodeItem))
    objection = _take_in_turn(inquiry, items)
    if objection is not None and objection.code is StatusCode.DISALLOW_TEMP and _may_contradict(inquiry, items):
        return _for_good(inquiry, items, objection)
    return objection


def _take_in_turn(inquiry: Inquiry, items: Sequence[Item]) -> Objection | None:
    mark = inquiry.trial.mark()
    for item in items:
        inquiry.worked += len(item.replicas)
        if (objection := take(inquiry, item)) is not None:
            inquiry.trial.undo(mark)
            return objection
    return None


def _may_contradict(inquiry: Inquiry, items: Sequence[Item]) -> bool:
    """Several things are asked for together, if only two parts of one group on the same node or drive."""
    if len(items) > 1 or not inquiry.partial:
        return True
    groups = [replica.group for replica in items[0].replicas]
    return len({*groups}) < len(groups)


def _for_good(inquiry: Inquiry, items: Sequence[Item], objection: Objection) -> Objection:
    """A request that contradicts itself need not wait for whatever else is in its way."""
    trial, inquiry.ideal = inquiry.trial, True
    # Other actions of a partial request are no part of the contradiction.
    inquiry.trial = Trial() if inquiry.partial else trial
    mark = inquiry.trial.mark()
    contradiction = _take_in_turn(inquiry, items)
    inquiry.trial.undo(mark)
    inquiry.trial, inquiry.ideal = trial, False
    if contradiction is None or not contradiction.obstacles:
        return objection
    message = _both(objection.message, contradiction)
    return replace_fields(objection, code=StatusCode.DISALLOW, message=message, deadline=None)


def _with_the_rest(
    inquiry: Inquiry, refusal: Refusal, actions: Sequence[Action]
) -> Generator[int, bool | None, Refusal]:
    """The actions from a refused one on go together or not at all: if they never can, nobody need wait for that."""
    if refusal.code is not StatusCode.DISALLOW_TEMP:
        return refusal
    inquiry.ideal, mark = True, inquiry.trial.mark()
    contradiction = None
    for action in actions:
        yield inquiry.work()
        inquiry.model.advance(inquiry.now)
        inquiry.turn_to(action, permission_duration=0)
        items = find(inquiry.model, action)
        objection = None if isinstance(items, Unresolved) else _take_in_turn(inquiry, items)
        if objection is not None and objection.obstacles:
            contradiction = objection
            break
    inquiry.trial.undo(mark)
    inquiry.ideal = False
    if contradiction is None:
        return refusal
    issue = replace(refusal.issue, message=_both(refusal.issue.message, contradiction)[:MAX_MESSAGE])
    return Refusal(refusal.action, StatusCode.DISALLOW, issue)


def _both(message: str, contradiction: Objection) -> str:
    besides = "" if contradiction.message == message else f"; besides, {contradiction.message}"
    return f"{message}{besides}: the request contradicts itself"


def permission_duration(model: ClusterModel, action: Action, given: int | None) -> int:
    """How long a permission lasts: the action's own time, else the request's, else the usual one. Zero is not given."""
    return action.duration or given or model.settings.default_permission_duration.microseconds


def _expanded(model: ClusterModel, actions: Iterable[Action]) -> Iterable[Action]:
    """An action for a tenant is one for each of its hosts. Why one was refused last time is of no interest."""
    for action in actions:
        asked = action if action.issue is None else replace(action, issue=None)
        hosts = model.hosts_of_tenant(action.tenant) if action.tenant and not action.host else ()
        yield from (replace(asked, host=host, tenant="") for host in hosts) if hosts else (asked,)


def _put_off(inquiry: Inquiry, action: Action) -> Refusal:
    message = "the cluster changes too fast to weigh all of the request at once: this action is weighed next time"
    return Refusal(action, StatusCode.DISALLOW_TEMP, Issue(type=IssueType.GENERIC, message=message), inquiry.now)


def _deferred(inquiry: Inquiry, action: Action, cap: int) -> Refusal:
    message = f"{cap} permissions at a time, and the others come first"
    return Refusal(action, StatusCode.DISALLOW_TEMP, Issue(type=IssueType.GENERIC, message=message), inquiry.retry_at)


def _refused(refusals: Sequence[Refusal], *, left: tuple[Action, ...], put_off: bool = False) -> Evaluation:
    """Nothing is granted: the most hopeful refusal, and the earliest moment at which any may change."""
    best = min(refusals, key=lambda refusal: _HOPE[refusal.code])
    moments = [refusal.deadline for refusal in refusals if refusal.code is best.code and refusal.deadline is not None]
    return Evaluation(
        best.code,
        reason=best.issue.message,
        deadline=min(moments, default=None),
        refusals=tuple(refusals),
        left=left if best.code in _TEMPORARY else (),
        put_off=put_off,
    )


def _with_issues(actions: Iterable[Action], issues: Mapping[int, Issue]) -> tuple[Action, ...]:
    """The actions that are left, with why."""
    return tuple(replace(action, issue=issues.get(number)) for number, action in enumerate(actions))
