"""The broker for others: gRPC, JSON over HTTP and Wall-E's API, all over the one service layer.

``proto/cms.proto`` is the contract. A request in JSON (``json_trees``) or protobuf (``proto_trees``) becomes a tree of
the fields that were given, ``translation`` makes the question of it, ``questions`` puts it to the broker, and back the
same way. ``http``, ``walle``, ``rpc`` and ``pushing`` are the interfaces; ``openapi`` and ``description`` tell of
them, ``page`` shows the log. ``access`` knows who asks, ``answering`` says what went wrong.

``mount`` and ``serve_grpc`` put all that over any broker. ``quorate broker`` is ``process``: a broker over a described
cluster, whose states and time ``cluster_routes`` change from outside and ``keeping`` keeps.
"""

from quorate.server.broker.access import Access, Users
from quorate.server.broker.mounting import mount, routes
from quorate.server.broker.pushing import Streams
from quorate.server.broker.rpc import GrpcListener, serve_grpc

__all__ = ["Access", "GrpcListener", "Streams", "Users", "mount", "routes", "serve_grpc"]
