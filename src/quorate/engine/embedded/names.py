"""Names, labels and keys: what Kubernetes allows, and what to say otherwise.

Every function gives the problems of a value, none when it is good.
"""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_dns_label = re.compile(_LABEL)
_dns_subdomain = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_word = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_WORD_RULE = "must be letters, digits, '-', '_' or '.', and begin and end with a letter or digit"


def dns_subdomain(value: str) -> list[str]:
    """A name that may have dots, as most objects have: ``pvc-1.node-a``."""
    problems = _length(value, 253)
    if not _dns_subdomain.fullmatch(value):
        problems.append(
            "must be an RFC 1123 subdomain: lower case letters, digits, '-' or '.',"
            " each part beginning and ending with a letter or digit"
        )
    return problems


def dns_label(value: str) -> list[str]:
    """A name without dots, as namespaces have."""
    problems = _length(value, 63)
    if not _dns_label.fullmatch(value):
        problems.append(
            "must be an RFC 1123 label: lower case letters, digits or '-', beginning and ending with a letter or digit"
        )
    return problems


def qualified_name(value: str) -> list[str]:
    """A key of a label or annotation, or a finalizer: ``name`` or ``example.com/name``."""
    *prefixes, name = value.split("/")
    if len(prefixes) > 1:
        return [f"must be a name, or a DNS subdomain, one '/' and a name; the name {_WORD_RULE}"]
    problems = []
    if prefixes == [""]:
        problems.append("prefix part must be non-empty")
    elif prefixes:
        problems += [f"prefix part {problem}" for problem in dns_subdomain(prefixes[0])]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _length(name, 63)]
    if not _word.fullmatch(name):
        problems.append(f"name part {_WORD_RULE}")
    return problems


def label_value(value: str) -> list[str]:
    """The value of a label: empty, or a word of up to 63 characters."""
    problems = _length(value, 63)
    if value and not _word.fullmatch(value):
        problems.append(f"a label's value may be empty, else it {_WORD_RULE}")
    return problems


def _length(value: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(value.encode()) > limit else []
