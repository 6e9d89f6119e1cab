"""``kubectl auth whoami`` and ``kubectl auth can-i``: people may use every verb, agents those of their role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from quorate.engine.embedded import EmbeddedStore
from quorate.server.kubernetes.admission import AGENT_VERBS, may
from quorate.server.kubernetes.callers import Caller
from quorate.server.kubernetes.paths import Kinds, Target

Json = dict[str, Any]
#: The ``spec`` of a review: what is asked.
Asked = Mapping[str, Any]

_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
#: What everybody with a name may read that is no object.
_DISCOVERY: Final = (
    *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"),
    *("/healthz", "/livez", "/readyz"),
)


class Reviews:
    """Answers to what somebody asks about themselves."""

    def __init__(self, kinds: Kinds, store: EmbeddedStore) -> None:
        self._kinds = kinds
        self._store = store
        #: By group and resource: its kind, and what goes into ``status``.
        self._answers: dict[tuple[str, str], tuple[str, Callable[[Caller, Asked], Json]]] = {
            ("authentication.k8s.io", "selfsubjectreviews"): ("SelfSubjectReview", _who),
            ("authorization.k8s.io", "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", self._access),
            ("authorization.k8s.io", "selfsubjectrulesreviews"): ("SelfSubjectRulesReview", _rules),
        }

    def has(self, group: str, version: str, resource: str) -> bool:
        """Whether that is a review."""
        return version == "v1" and (group, resource) in self._answers

    def answer(self, group: str, version: str, resource: str, caller: Caller, body: Any) -> Json:
        """The filled-in review. Of its ``body`` only what makes sense is read, and only if an agent asks."""
        kind, status = self._answers[group, resource]
        filled = status(caller, _mapping(body, "spec"))
        return {"kind": kind, "apiVersion": f"{group}/{version}", "metadata": {}, "status": filled}

    def _access(self, caller: Caller, asked: Asked) -> Json:
        return {"allowed": not caller.agent_of or self._may(caller, asked)}

    def _may(self, caller: Caller, asked: Asked) -> bool:
        if path := _mapping(asked, "nonResourceAttributes"):
            readable = any(fnmatchcase(_text(path, "path"), pattern) for pattern in _DISCOVERY)
            return _text(path, "verb") == "get" and readable
        about = _mapping(asked, "resourceAttributes")
        verb, group, resource = (_text(about, name) for name in ("verb", "group", "resource"))
        if (group, resource) in self._answers:
            return verb == "create"
        kind = next((kind for kind in self._kinds.all if (kind.group, kind.plural) == (group, resource)), None)
        if kind is None:
            return False
        namespace, name, subresource = (_text(about, part) for part in ("namespace", "name", "subresource"))
        return may(caller, verb, Target(kind, namespace, name, subresource), self._store)


def _who(caller: Caller, _: Asked) -> Json:
    return {"userInfo": {"username": caller.user, "groups": list(caller.groups)}}


def _rules(caller: Caller, _: Asked) -> Json:
    if not caller.agent_of:
        return _EVERYTHING
    rules = [
        {"verbs": sorted(verbs), "apiGroups": [kind.group], "resources": [resource]}
        for kind, (of_object, of_status) in AGENT_VERBS.items()
        for resource, verbs in ((kind.plural, of_object), (f"{kind.plural}/status", of_status))
        if verbs
    ]
    discovery = [{"verbs": ["get"], "nonResourceURLs": list(_DISCOVERY)}]
    # The Secrets of its volumes are not in it.
    return {"resourceRules": rules, "nonResourceRules": discovery, "incomplete": True}


def _mapping(found: Any, name: str) -> Asked:
    inside = found.get(name) if isinstance(found, Mapping) else None
    return inside if isinstance(inside, Mapping) else {}


def _text(found: Asked, name: str) -> str:
    inside = found.get(name)
    return inside if isinstance(inside, str) else ""
