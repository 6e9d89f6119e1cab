"""``deploy/admission`` on a real API server, for as long as a test needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.apiserver import ApiServer

DIRECTORY = Path(__file__).parents[2] / "deploy" / "admission"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def policies() -> list[dict[str, Any]]:
    """Every document."""
    return [document for file in sorted(DIRECTORY.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())]


def apply(apiserver: ApiServer) -> None:
    """Create what is missing. A real server takes policies up a moment later."""
    for document in policies():
        plural = document["kind"].lower().removesuffix("y") + ("ies" if document["kind"].endswith("y") else "s")
        assert apiserver.request("POST", f"/apis/{document['apiVersion']}/{plural}", document).code in (201, 409)


def remove(apiserver: ApiServer) -> None:
    """Other tests share the server."""
    for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        apiserver.request("DELETE", f"{_ADMISSION}/{plural}")
