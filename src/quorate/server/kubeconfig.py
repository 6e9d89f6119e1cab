"""The file that makes ``kubectl`` speak to us: where we are, whom to trust, and the token if one is needed."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from quorate.server.private_file import write_private

_NAME = "quorate"


def kubeconfig(url: str, *, authority: bytes | None = None, token: str | None = None) -> dict[str, Any]:
    """A kubeconfig with one context."""
    cluster: dict[str, Any] = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    user: dict[str, Any] = {"token": token} if token is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> None:
    """Write it for its owner only: it may hold the token."""
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())
