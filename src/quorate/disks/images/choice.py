"""On which disks further copies of an image go: apart from one another first, then where most room is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quorate.disks import requests
from quorate.disks.entries import image
from quorate.disks.images.view import Candidate, ImageView

#: How many disks a message lists.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Choice:
    """Disks to be asked; and who else could not be, and why."""

    chosen: tuple[Candidate, ...] = ()
    why_not: str = ""


def choose(view: ImageView, count: int) -> Choice:
    """So many disks, or as many as there are. The same view gives the same choice."""
    if count <= 0:
        return Choice()
    entry = image(view.image.name)
    refusals, open_ones = [], []
    for candidate in view.candidates:
        refused = requests.refusal(candidate.schedule, entry, candidate.size)
        if refused is None:
            open_ones.append(candidate)
        else:
            refusals.append(requests.describe(candidate.schedule, refused))
    copies_on = Counter(
        copy.schedule.spec.node_id for copy in view.copies if copy.intended and copy.schedule is not None
    )
    chosen: list[Candidate] = []
    while open_ones and len(chosen) < count:
        best = min(
            open_ones,
            key=lambda each: (
                copies_on[each.schedule.spec.node_id],
                each.size - requests.room(each.schedule),
                each.schedule.name,
            ),
        )
        open_ones.remove(best)
        copies_on[best.schedule.spec.node_id] += 1
        chosen.append(best)
    rest = len(refusals) - _NAMED
    more = f"; and {rest} more" if rest > 0 else ""
    return Choice(tuple(chosen), "; ".join(refusals[:_NAMED]) + more)
