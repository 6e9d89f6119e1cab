"""Who asks, and for whom. The identity is the user: a message may only repeat it, unless its sender is an admin."""

from __future__ import annotations

from typing import Final
from unicodedata import category

from quorate.api.maintenance.action import StatusCode
from quorate.maintenance.broker.declined import Declined, wrong
from quorate.maintenance.messages import Caller

#: In ids and objects; see ``quorate.api.maintenance.action.UserName``.
LONGEST_NAME: Final = 128
#: Unicode's words for control characters and for halves of a character.
_UNSEEN: Final = frozenset({"Cc", "Cs"})


def user_of(named: str, caller: Caller) -> str:
    """Whom a message is from. Declined: it names somebody that the caller is not, or nobody."""
    if caller.anyone:
        if not named:
            raise wrong("User is empty: say who you are")
        user = named
    elif not caller.name:
        raise Declined(StatusCode.UNAUTHORIZED, "the caller is not known: authenticate first")
    elif named in ("", caller.name) or caller.admin:
        user = named or caller.name
    else:
        raise Declined(
            StatusCode.UNAUTHORIZED,
            f"User is {named!r} but the caller is {caller.name!r}: only an admin acts for others",
        )
    if len(user) > LONGEST_NAME:
        raise wrong(f"User has {len(user)} characters: at most {LONGEST_NAME} are allowed")
    if strange := next((character for character in user if category(character) in _UNSEEN), ""):
        raise wrong(f"User has the control character {strange!r}: it becomes part of ids, which people read")
    return user


def require_admin(caller: Caller, what: str) -> None:
    """Declined unless the caller is an admin, or nobody is told apart from anybody."""
    if not (caller.anyone or caller.admin):
        who = repr(caller.name) if caller.name else "a caller that is not known"
        raise Declined(StatusCode.UNAUTHORIZED, f"{what} is for admins: {who} is not one")
