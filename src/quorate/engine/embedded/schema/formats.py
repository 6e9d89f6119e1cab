"""Formats of text, as the decoder and Kubernetes both read them."""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

looks_like_date_time = _DATE_TIME.fullmatch


def is_date_time(text: str) -> bool:
    """RFC 3339, with a zone, and a moment that exists (``looks_like_date_time`` leaves that to the decoder)."""
    if not looks_like_date_time(text):
        return False
    try:
        msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return False
    return True


def is_base64(text: str) -> bool:
    """Standard base64 with its padding; to Kubernetes, unlike to the decoder, nothing is not base64."""
    if not text:
        return False
    try:
        msgspec.convert(text, bytes)
    except msgspec.ValidationError:
        return False
    return True
