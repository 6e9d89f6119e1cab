"""Placement."""

from quorate.placement.choose import choose
from quorate.placement.layout import LEVELS
from quorate.placement.request import Replica, Request, Room

__all__ = ["LEVELS", "Replica", "Request", "Room", "choose"]
