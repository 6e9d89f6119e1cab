"""Names that a node's tools give a meaning of their own, so that nothing of ours may have them.

A volume's name is the name of its DRBD resource, and stands on command lines; so do names of LVM's. What those tools
take for something else is refused twice: by the API when an object is made (the CEL rules here), and by an agent, which
has to do with whatever is in the store (the functions here). ``tests/api/test_reserved.py`` holds the two together,
``tests/attacks/agent`` holds both to the real drbdadm.

| name                    | what the tools make of it                                                          |
|-------------------------|------------------------------------------------------------------------------------|
| ``all``                 | every resource: ``drbdsetup down all`` takes down whatever the node has            |
| ``global``              | a section of their files: no file with such a resource can be read                 |
| ``minor-7``             | the device with that number, whosever it is                                        |
| ``.`` and ``..``        | for LVM none at all; under /dev, another directory                                 |
| ``snapshot…, pvmove…``  | LVM's own volumes                                                                  |
| ``…_tdata…`` and others | LVM's own parts of a volume                                                        |
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Meta

from quorate.api.struct import Rule, rule

_RESOURCE_WORDS: Final = ("all", "global")
_MINOR: Final = "^minor-[0-9]+$"
_RESOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*\Z")
_LVM_NAME: Final = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]*\Z")
_LVM_BEGINNINGS: Final = ("snapshot", "pvmove")
_LVM_PARTS: Final = (
    "_cdata|_cmeta|_corig|_cpool|_cvol|_wcorig|_imeta|_iorig|_mimage|_mlog|_pmspare|_rimage|_rmeta|_tdata|_tmeta|_vdata"
    "|_vorigin"
)
_LVM_RESERVED: Final = f"^({'|'.join(_LVM_BEGINNINGS)})|{_LVM_PARTS}"
#: What LVM takes for a volume.
_LVM_NAME_LENGTH: Final = 122
#: What the device mapper has for the names of a group and of a volume in it.
_MAPPED_LENGTH: Final = 127
#: A group whose name takes more leaves too little of that for a volume's.
_GROUP_NAME_LENGTH: Final = 90

_NO_RESOURCE: Final = (
    "DRBD's tools give this name a meaning (all: every resource of a node; global: a section of their files;"
    " minor-N: a device): choose another"
)
_NO_LOGICAL_VOLUME: Final = (
    "LVM keeps this name for itself (., .., snapshot..., pvmove..., and names with _tdata, _mlog and the like), or it"
    f" has more than {_LVM_NAME_LENGTH} characters: choose another"
)
_NO_GROUP: Final = (
    f"LVM has no group named . or .., and one with more than {_GROUP_NAME_LENGTH} characters leaves no room for the"
    " names of volumes: choose another"
)


def no_resource_rule(field: str) -> Rule:
    """A RULE: what ``self.<field>`` says may be a DRBD resource. Only of new objects: an old one must be able to go."""
    words = ", ".join(f"'{word}'" for word in _RESOURCE_WORDS)
    return Rule(f"!(self.{field} in [{words}]) && !self.{field}.matches('{_MINOR}')", _NO_RESOURCE, only_of_new=True)


def logical_volume_name() -> Meta:
    """A field that names a logical volume, or a thin pool."""
    allowed = f"self.size() <= {_LVM_NAME_LENGTH} && !(self in ['.', '..']) && !self.matches('{_LVM_RESERVED}')"
    return rule(allowed, _NO_LOGICAL_VOLUME)


def volume_group_name() -> Meta:
    """A field that names a volume group."""
    return rule(f"self.size() <= {_GROUP_NAME_LENGTH} && !(self in ['.', '..'])", _NO_GROUP)


def why_no_resource(name: str) -> str:
    """Why a name must not stand on a command line as a DRBD resource's; "" if it may."""
    if not _RESOURCE.match(name):
        return f"{name!r} cannot be a DRBD resource's name: letters, digits, '.', '-', '_' and '+' are allowed"
    if name in _RESOURCE_WORDS or re.match(_MINOR, name):
        return f"{name!r}: {_NO_RESOURCE}"
    return ""


def why_no_group(name: str) -> str:
    """The same of a volume group of LVM's."""
    if not _LVM_NAME.match(name) or name in (".", "..") or len(name) > _MAPPED_LENGTH:
        return f"{name!r} cannot be a volume group's name"
    return ""


def why_no_logical_volume(name: str, group: str) -> str:
    """The same of a logical volume, or a thin pool, in a group."""
    if why := why_no_group(group):
        return why
    if not _LVM_NAME.match(name):
        return f"{name!r} cannot be a logical volume's name: letters, digits, '.', '-', '_' and '+' are allowed"
    if name in (".", "..") or len(name) > _LVM_NAME_LENGTH or re.search(_LVM_RESERVED, name):
        return f"{name!r}: {_NO_LOGICAL_VOLUME}"
    # Joined by a hyphen, with every hyphen in them doubled.
    mapped = len(group) + group.count("-") + 1 + len(name) + name.count("-")
    if mapped > _MAPPED_LENGTH:
        return (
            f"{group}/{name} is too long: the device mapper has {_MAPPED_LENGTH} characters for both, {mapped} needed"
        )
    return ""
