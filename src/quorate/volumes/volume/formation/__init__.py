"""The birth of a volume: 002's three phases, each with a timeout of its own (M8), and the way back.

    begin -> Preconfigure -> EstablishConnectivity -> BootstrapData -> done
                 ^    |                |                    |
                 |    +----------------+--------------------+  too long, or not as it should be
                 +--------------- Restarting

| phase                 | what is there at its end                                                              |
|-----------------------|---------------------------------------------------------------------------------------|
| Preconfigure          | replicas with a place, space, logical volume and address; nothing of DRBD yet         |
| EstablishConnectivity | members that know one another and are connected; no data: Inconsistent everywhere     |
| BootstrapData         | data: every copy UpToDate, by the one operation that may begin a history (M3, M22)    |
| Restarting            | nothing: replicas, logical volumes and space are given back                           |

Each change of phase is one write of the volume's status with its resourceVersion; what follows from it is done by the
passes that see it. So a crash between any two writes leaves a state that the next pass understands. The tie-breaker is
born with the others (M9). Waiting for space or nodes is a wait, not a failure: no timeout, nothing churns (M10).

Nothing is given back before every disk was shown to be empty (``emptiness``): what the API says of a formation may be
years old. A volume that turns out to have data, and quorum, is born.
"""

from __future__ import annotations

from datetime import datetime
from random import Random

from quorate.api.storage.datamesh import FormationPhase
from quorate.volumes.view import VolumeView
from quorate.volumes.volume.formation.bootstrap import bootstrap
from quorate.volumes.volume.formation.connectivity import establish
from quorate.volumes.volume.formation.preconfigure import preconfigure
from quorate.volumes.volume.formation.restart import clear_away
from quorate.volumes.volume.formation.steps import begin
from quorate.volumes.volume.outcome import Outcome


def form(view: VolumeView, now: datetime, random: Random) -> Outcome:
    """One pass over a volume that has yet to be born (``reconcileFormation``). It must have a configuration."""
    formation = view.formation
    if formation is None:
        return begin(view, now)
    match formation.phase:
        case FormationPhase.PRECONFIGURE:
            return preconfigure(view, now, random)
        case FormationPhase.ESTABLISH_CONNECTIVITY:
            return establish(view, now)
        case FormationPhase.BOOTSTRAP_DATA:
            return bootstrap(view, now)
        case FormationPhase.RESTARTING:
            return clear_away(view, now)


__all__ = ["form"]
