"""Whether the kernel has the hash algorithm that authenticates the members to one another (M19).

``/proc/crypto`` is asked before anything is written. It lists only what is loaded, so what is not there is loaded, as
the kernel itself would do when the resource comes up; it may still refuse the algorithm then (120), which counts just
the same.
"""

from __future__ import annotations

from datetime import datetime

from quorate.agent.backoff import Patience
from quorate.agent.replica.commands import ADJUST
from quorate.agent.replica.verdict import FINE, Verdict, attempt, command_error, failed
from quorate.agent.replica.view import View
from quorate.agent.steps import FILE, Look, Run, Step
from quorate.api.storage.drbd import AlgorithmError
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

#: Somebody may have loaded a module.
ASK_AGAIN = Patience(first=60.0, longest=60.0)
CRYPTO_SEEN = "look at /proc/crypto"
LOAD = "load"
REASON = "UnsupportedAlgorithm"


def check_algorithm(view: View, now: datetime, settled: bool) -> Verdict:
    """sharedSecretAlgSelectionError, set and cleared."""
    wanted = view.config.shared_secret_alg
    if wanted is None:
        return FINE
    name = wanted.value.lower()
    if view.algorithms is None:
        # What cannot be read cannot forbid: then the kernel says it when the resource comes up.
        look = attempt(view, now, CRYPTO_SEEN, "", _look(view, ""), patience=ASK_AGAIN)
        return look if look.steps else FINE
    if name in view.algorithms:
        return Verdict(errors={"shared_secret_alg_selection_error": _refused_by_kernel(view, wanted.value)})
    load = Run(("modprobe", "-q", f"crypto-{name}"), LOAD, name, accept=tuple(range(256)))
    look = attempt(view, now, CRYPTO_SEEN, name, (load, *_look(view, name)), patience=ASK_AGAIN)
    last = view.outcomes.get(CRYPTO_SEEN)
    if last is None or last.about != name:
        return look
    error = AlgorithmError(
        command=f"read {view.crypto_file}",
        output=f"the kernel has no {wanted.value} and no module for it: choose another algorithm",
        reason=REASON,
        unsupported_alg=wanted.value,
    )
    return Verdict(
        steps=look.steps, again=look.again, errors={"shared_secret_alg_selection_error": error}, unsettled=True
    )


def _look(view: View, about: str) -> tuple[Step, ...]:
    return (Look(FILE, view.crypto_file, CRYPTO_SEEN, about),)


def _refused_by_kernel(view: View, algorithm: str) -> AlgorithmError | None:
    last = failed(view, ADJUST)
    if last is None or last.exit_code is None:
        return None
    if understand(last.exit_code, last.output).outcome is not Meaning.UNSUPPORTED_ALGORITHM:
        return None
    shown = command_error(last, view)
    return AlgorithmError(
        command=shown.command,
        exit_code=shown.exit_code,
        output=shown.output,
        reason=REASON,
        unsupported_alg=algorithm,
    )
