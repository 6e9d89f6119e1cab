"""The Kubernetes engine: the same Store over a real API server.

``config`` finds the server (flags, KUBECONFIG, the pod we are in) and gives a ``Connection``; ``kubeconfig``,
``exec_plugin``, ``credentials``, ``proxy`` and ``tls`` are its parts. ``transport`` carries requests: bounded in
number and time, with 401 and 429 dealt with, and with the truth about a write whose answer never came. ``answers``
turns a server's refusal into our errors, ``paths`` knows the URLs, ``watching`` decodes the event stream, and
``store`` puts the verbs on top. Restarting a watch is not done here: that is the cache's reflector, which decides
between resuming and listing again. Why no packaged client: docs/decisions/0001-kubernetes-client.md.
"""

from quorate.engine.kubernetes.config import in_cluster, load_connection
from quorate.engine.kubernetes.connection import Connection
from quorate.engine.kubernetes.store import KubernetesStore
from quorate.engine.kubernetes.transport import Limits, Observer

__all__ = ["Connection", "KubernetesStore", "Limits", "Observer", "in_cluster", "load_connection"]
