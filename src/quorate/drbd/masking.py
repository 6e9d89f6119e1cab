"""Output made fit for showing: no colours, no secrets, not too long.

drbdadm repeats the failed command in full, shared secret included (recording ``bad_config``), and quotes the beginning
of a value that it refuses. What a secret looks like is therefore masked by its place, whether we know it or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from quorate.api.secret import Secret

#: What a CommandError has room for.
MAX_LENGTH: Final = 1024
MASK: Final = "***"

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PLACES = (
    # A command line. It is not quoted: a secret with spaces ends where the next option or the sentence goes on.
    re.compile(r"(--shared-secret[= ]).*?(?= --[a-z_]|' terminated|$)", re.MULTILINE),
    # A file, whole or cut off.
    re.compile(r'(shared-secret[ \t]+)"(?:[^"\\\n]|\\[^\n])*(?:"|\\?$)', re.MULTILINE),
    re.compile(r'(shared-secret[ \t]+)[^\s";][^\s;]*'),
    # ``drbdsetup show --json``.
    re.compile(r'("shared-secret"\s*:\s*)"(?:[^"\\\n]|\\[^\n])*(?:"|\\?$)', re.MULTILINE),
    # Of a value it refuses, drbdadm prints the first 20 characters.
    re.compile(r"(while parsing value \()'.*?'(?=\)\s+for shared-secret)", re.DOTALL),
)
#: How much of a value drbdadm prints when it refuses it.
_QUOTED_BEGINNING: Final = 20


def plain(text: str) -> str:
    """Without terminal escapes and other control characters, and always valid UTF-8."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def masked(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Without these secrets, nor any other that a command line or a file in the text gives as a shared secret."""
    # What is known first and whole: a place ends where a secret seems to, and "a --b" seems to end after the a.
    for form in sorted({form for secret in secrets for form in _forms(secret.reveal())}, key=len, reverse=True):
        text = text.replace(form, MASK)
    for place in _PLACES:
        text = place.sub(rf"\1{MASK}", text)
    return text


def trimmed(text: str, limit: int = MAX_LENGTH) -> str:
    """At most ``limit`` characters: the first lines and the last ones, since they say what failed and how."""
    text = text.strip("\n")
    if len(text) <= limit:
        return text
    gap = "\n…\n"
    room = limit - len(gap)
    if room < 2:
        return text[:limit]
    head, tail = text[: room - room // 2], text[-(room // 2) :]
    # Whole lines where that costs less than half of each part.
    head_end, tail_start = head.rfind("\n"), tail.find("\n")
    if head_end > len(head) // 2:
        head = head[:head_end]
    if 0 <= tail_start < len(tail) // 2:
        tail = tail[tail_start + 1 :]
    return head + gap + tail


def presentable(text: str, secrets: Iterable[Secret] = ()) -> str:
    """Plain, masked and trimmed, in this order: a secret cut in two would not be found."""
    return trimmed(masked(plain(text), secrets))


def _forms(secret: str) -> Iterable[str]:
    """How a secret can show in output: as it is, escaped for a file or for a shell, or its beginning."""
    if secret:
        yield secret
        yield plain(secret) or secret
        yield secret.replace("\\", "\\\\").replace('"', '\\"')
        yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", secret)
    if len(secret) > _QUOTED_BEGINNING:
        yield secret[:_QUOTED_BEGINNING]
