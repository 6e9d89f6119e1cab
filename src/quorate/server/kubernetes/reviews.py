"""``kubectl auth whoami`` and ``kubectl auth can-i``: people may use every verb.

An agent is told the same, and is refused what its role has not got when it tries (``admission``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.server.kubernetes.callers import Caller

Json = dict[str, Any]

_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def _who(caller: Caller) -> Json:
    return {"userInfo": {"username": caller.user, "groups": list(caller.groups)}}


#: The answers, by the path that is posted to: what goes into ``status``.
_STATUS: dict[tuple[str, str], tuple[str, Callable[[Caller], Json]]] = {
    ("authentication.k8s.io", "selfsubjectreviews"): ("SelfSubjectReview", _who),
    ("authorization.k8s.io", "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", lambda _: {"allowed": True}),
    ("authorization.k8s.io", "selfsubjectrulesreviews"): ("SelfSubjectRulesReview", lambda _: _EVERYTHING),
}


def review(group: str, version: str, resource: str, caller: Caller) -> Json | None:
    """The filled-in review, or None if that is not one. What was asked does not matter, so it is not read."""
    if version != "v1" or (group, resource) not in _STATUS:
        return None
    kind, status = _STATUS[group, resource]
    return {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {}, "status": status(caller)}
