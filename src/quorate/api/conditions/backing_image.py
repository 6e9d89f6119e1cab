"""Conditions of a BackingImage."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true


class Ready(ConditionType):
    """The image has as many copies as it should."""

    READY = true("Ready", "All copies are there.")
    WRONG_NAMESPACE = false(
        "WrongNamespace", "Images are looked after in the namespace quorate-system only.", "Create it there."
    )
    SIZE_UNKNOWN = false("SizeUnknown", "The image's size is not known, so no space is asked for.", "Set spec.size.")
    COPIES_PENDING = false("CopiesPending", "Copies are being made.")
    NO_SPACE = false("NoSpace", "No disk has room for another copy.", "Add space, or lower minNumberOfCopies.")
    COPY_FAILED = false("CopyFailed", "A copy could not be made.", "See status.diskFileStatusMap.")
