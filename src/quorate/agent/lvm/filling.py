"""Whether a volume holds what its source said, from what the commands that copied it have told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from quorate.agent.lvm import commands
from quorate.agent.lvm.piece import Piece
from quorate.agent.lvm.seen import SeenVolume

#: ``sha512sum`` puts a backslash before a line in which it had to escape the file's name.
_SUM: Final = re.compile(r"\\?([0-9a-f]{128})\b")


@dataclass(frozen=True, slots=True)
class Filled:
    """It does."""

    #: SHA-512 of what was copied.
    checksum: str


def filled(piece: Piece, volume: SeenVolume) -> Filled | str:
    """The checksum if it does; why not, if it does not; "" while nobody knows."""
    source = piece.spec.source
    about = whole(volume)
    copied, summed, compared = (
        piece.outcomes.get(purpose) for purpose in (commands.FILL, commands.CHECKSUM, commands.COMPARE)
    )
    if source is None or copied is None or summed is None or compared is None:
        return ""
    if any(outcome.about != about or not outcome.succeeded for outcome in (copied, summed, compared)):
        return ""
    found = _SUM.match(summed.output)
    if found is None:
        return f"sha512sum of {source.path} gave no checksum: {summed.output[:200]!r}."
    if source.checksum and found[1] != source.checksum.lower():
        return f"The SHA-512 of {source.path} is {found[1]}; asked for was {source.checksum}."
    if compared.exit_code != 0 and "EOF on -" not in compared.output:
        return f"What was read back from {volume.path} is not what is in {source.path}: {compared.output[:200]}"
    return Filled(found[1])


def whole(volume: SeenVolume) -> str:
    """What a zeroing or filling was about: another volume of the same name is another matter."""
    return f"{volume.uuid} {volume.size}"
