"""How the parts of an erasure group must be laid out in realms and domains."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from quorate.maintenance.nouns import Species, VDiskId

REALMS_OF_MIRROR_3_DC: Final = 3
DOMAINS_OF_MIRROR_3_DC: Final = 3


def fault(species: Species, parts: Collection[VDiskId]) -> str:
    """What is wrong with a group; empty: nothing."""
    domains = {(part.realm, part.domain) for part in parts}
    realms = {realm for realm, _ in domains}
    if species is Species.MIRROR_3_DC:
        sizes = {realm: sum(of == realm for of, _ in domains) for realm in realms}
        if len(realms) != REALMS_OF_MIRROR_3_DC or min(sizes.values()) < DOMAINS_OF_MIRROR_3_DC:
            return f"{species.word} needs {REALMS_OF_MIRROR_3_DC} realms of {DOMAINS_OF_MIRROR_3_DC} domains at least"
        return ""
    if len(realms) != 1:
        return f"{species.word} has one realm, not {len(realms)}"
    if len(domains) < fewest_domains(species):
        return f"{species.word} needs {fewest_domains(species)} domains at least, not {len(domains)}"
    return ""


def fewest_domains(species: Species) -> int:
    """One for every part of the data and of the parity."""
    match species:
        case Species.NONE:
            return 1
        case Species.MIRROR_3:
            return 3
        case Species.MIRROR_3_OF_4:
            return 4
        case Species.MIRROR_3_DC:
            return REALMS_OF_MIRROR_3_DC * DOMAINS_OF_MIRROR_3_DC
        case _:
            return sum(map(int, re.findall(r"\d+", species.word)))
