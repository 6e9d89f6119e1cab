"""The embedded engine in the Kubernetes REST dialect: an unmodified ``kubectl``, or any client, works against it.

A request passes ``auth`` (who), ``paths`` (about what) and ``resources`` (the verb); ``callers`` are who there is, and
``admission`` is what agents may write. ``options`` and ``requests`` read
what it asks for, ``patches`` and ``strategic`` what it changes; ``negotiation`` decides between object, table and
metadata, ``rendering`` with ``tables``, ``jsonpath`` and ``ages`` writes them. ``watching`` keeps streams open.
``discovery`` and ``openapi`` tell clients what there is; ``status`` is every answer that is not an object.
``app`` puts it together, ``serving`` listens, ``tls`` makes the certificates.

Stored objects are JSON bytes and go out as they are: nothing is parsed to be printed again. What a real API server
does was read from one, and where we differ (server-side apply, protobuf, OpenAPI v2, garbage collection) the answer
says so.
"""

from quorate.server.kubernetes.app import Facade
from quorate.server.kubernetes.auth import Access
from quorate.server.kubernetes.callers import AgentTokens
from quorate.server.kubernetes.serving import Listener, listen

__all__ = ["Access", "AgentTokens", "Facade", "Listener", "listen"]
