"""What a rule says about a replica."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from quorate.agent.backoff import Patience
from quorate.agent.memory import Outcome
from quorate.agent.replica.view import View
from quorate.agent.steps import Step
from quorate.api.secret import Secret
from quorate.api.storage.drbd import CommandError, DrbdConfig
from quorate.drbd.masking import presentable
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

#: An exit code for what never came to one.
NO_EXIT_CODE = -1


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule's answer. An empty one: all is well as far as this rule goes."""

    steps: tuple[Step, ...] = ()
    #: The name under which the steps are done; "" as everything that touches the resource.
    work: str = ""
    #: The steps take the disk into use, or change its size. Nobody may grow or zero it meanwhile, and what was seen of
    #: the logical volumes must still hold when they begin: metadata moved to where zeros are being written is lost.
    disk: bool = False
    #: Nothing else is to be decided in this pass.
    stop: bool = False
    #: What the file says is not yet, or cannot be, what the kernel has: only what helps in that case may follow.
    unsettled: bool = False
    #: Fields of DrbdErrors that are known now.
    errors: Mapping[str, CommandError | None] = field(default_factory=dict)
    #: Fields of DrbdActual that have changed.
    actual: Mapping[str, Any] = field(default_factory=dict)
    #: Outcomes that mean nothing any more.
    drop: tuple[str, ...] = ()
    #: Look again after so many seconds.
    again: float | None = None


FINE = Verdict()

PATIENCE = Patience()


@cache
def cleared(error: str) -> Verdict:
    """All is well, and what was said of it in this field of DrbdErrors holds no more."""
    return Verdict(errors={error: None})


def attempt(
    view: View, now: datetime, purpose: str, about: str, steps: tuple[Step, ...], *, patience: Patience = PATIENCE
) -> Verdict:
    """Try these steps, unless the same was tried just now. Either way the rest is not settled."""
    wait = patience.left(view.outcomes.get(purpose), about, now)
    if wait > 0:
        return Verdict(unsettled=True, again=wait)
    return Verdict(steps=steps, unsettled=True)


def failed(view: View, purpose: str) -> Outcome | None:
    """The last outcome of a purpose, if it was a failure."""
    last = view.outcomes.get(purpose)
    return last if last is not None and not last.succeeded else None


def command_error(outcome: Outcome, view: View) -> CommandError:
    """A failure as the API shows it: without secrets, not too long, with a code where the cause is known."""
    code = outcome.exit_code
    meaning = understand(code, outcome.output).outcome if code is not None else Meaning.FAILED
    reason = "" if meaning in (Meaning.FAILED, Meaning.SUCCEEDED) else str(meaning)
    return CommandError(
        command=outcome.command[:1024],
        exit_code=NO_EXIT_CODE if code is None else code,
        output=presentable(outcome.output, secrets_of(view.config, view.secret)),
        reason="CommandHung" if outcome.hung else reason,
    )


def own_error(reason: str, message: str, command: str = "") -> CommandError:
    """Something that is wrong although no command has failed."""
    return CommandError(command=command[:1024], exit_code=0, output=message[:1024], reason=reason)


def secrets_of(config: DrbdConfig, known: Secret | None) -> tuple[Secret, ...]:
    """What must not be shown: what the config says, or what the Secret holds that it names."""
    return tuple(secret for secret in (known or config.shared_secret,) if secret is not None)
