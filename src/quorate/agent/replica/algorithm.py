"""Whether the kernel has the hash algorithm that authenticates the members to one another (M19).

``/proc/crypto`` is asked before anything is written; the kernel may still refuse the algorithm when the resource comes
up (120), which counts just the same.
"""

from __future__ import annotations

from datetime import datetime

from quorate.agent.backoff import Patience
from quorate.agent.replica.commands import ADJUST
from quorate.agent.replica.verdict import FINE, Verdict, attempt, command_error, failed
from quorate.agent.replica.view import View
from quorate.agent.steps import FILE, Look
from quorate.api.storage.drbd import AlgorithmError
from quorate.drbd.outcomes import Outcome as Meaning
from quorate.drbd.outcomes import understand

#: Somebody may have loaded a module.
ASK_AGAIN = Patience(first=60.0, longest=60.0)
CRYPTO_SEEN = "look at /proc/crypto"
REASON = "UnsupportedAlgorithm"


def check_algorithm(view: View, now: datetime, settled: bool) -> Verdict:
    """sharedSecretAlgSelectionError, set and cleared."""
    wanted = view.config.shared_secret_alg
    if wanted is None:
        return FINE
    look = attempt(view, now, CRYPTO_SEEN, "", (Look(FILE, view.crypto_file, CRYPTO_SEEN),), patience=ASK_AGAIN)
    if view.algorithms is None:
        # What cannot be read cannot forbid: then the kernel says it when the resource comes up.
        return look if look.steps else FINE
    if wanted.value.lower() in view.algorithms:
        return Verdict(errors={"shared_secret_alg_selection_error": _refused_by_kernel(view, wanted.value)})
    error = AlgorithmError(
        command=f"read {view.crypto_file}",
        output=f"the kernel has no {wanted.value}: load its module, or choose another algorithm",
        reason=REASON,
        unsupported_alg=wanted.value,
    )
    return Verdict(
        steps=look.steps, again=look.again, errors={"shared_secret_alg_selection_error": error}, unsettled=True
    )


def _refused_by_kernel(view: View, algorithm: str) -> AlgorithmError | None:
    last = failed(view, ADJUST)
    if last is None or last.exit_code is None:
        return None
    if understand(last.exit_code, last.output).outcome is not Meaning.UNSUPPORTED_ALGORITHM:
        return None
    shown = command_error(last, view.config)
    return AlgorithmError(
        command=shown.command,
        exit_code=shown.exit_code,
        output=shown.output,
        reason=REASON,
        unsupported_alg=algorithm,
    )
