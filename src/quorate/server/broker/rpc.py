"""gRPC: one call for every question, a stream of changes, and beside them health and reflection.

Messages are parsed here, not by the library: to bytes that are no message the answer is INVALID_ARGUMENT, and a value
that a field cannot have (an enumeration's number without a name) is WRONG_REQUEST and names the field.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quorate.api.maintenance.action import StatusCode
from quorate.engine.logs import get_logger
from quorate.errors import CannotListen, Forbidden, Unauthorized
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import Caller
from quorate.server.broker import proto_trees
from quorate.server.broker.access import Access, bearer
from quorate.server.broker.answering import MAX_BODY
from quorate.server.broker.json_trees import Malformed, Tree
from quorate.server.broker.proto import cms_pb2
from quorate.server.broker.pushing import Streams
from quorate.server.broker.questions import QUESTIONS, Question, refusal
from quorate.server.broker.rpc_health import Health
from quorate.server.connections import ConnectionLimits

_log = get_logger(__name__)

SERVICE: Final = cms_pb2.DESCRIPTOR.services_by_name["Cms"].full_name
_BY_FIELD: Final = {question.field: question for question in QUESTIONS}
#: Seconds that a stopping server gives to calls under way; streams are ended at once.
_PATIENCE: Final = 5.0

_Context = grpc.aio.ServicerContext[Any, Any]

#: Milliseconds that a connection is kept on which nothing is asked; clients connect anew when they need one.
_IDLE = 120_000


@dataclass(frozen=True, slots=True)
class GrpcListener:
    """A server that accepts calls."""

    host: str
    port: int
    _server: grpc.aio.Server
    _streams: Streams

    async def close(self) -> None:
        """Accept nothing more, end the streams, let the rest finish."""
        self._streams.stop()
        await self._server.stop(_PATIENCE)


async def serve_grpc(
    broker: Broker,
    access: Access,
    *,
    host: str,
    port: int,
    credentials: grpc.ServerCredentials | None = None,
) -> GrpcListener:
    """Start serving. Port 0 lets the system choose; the listener knows which it was."""
    streams = Streams(broker)
    service = _Service(broker, access, streams)
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", MAX_BODY),
            ("grpc.so_reuseport", 0),
            # Whoever connects and says nothing, or not enough, is let go; and nobody takes all descriptors.
            ("grpc.server_handshake_timeout_ms", 10_000),
            ("grpc.max_connection_idle_ms", _IDLE),
            ("grpc.max_allowed_incoming_connections", max(ConnectionLimits.of_this_process().total // 4, 4)),
        ]
    )
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Call": grpc.unary_unary_rpc_method_handler(service.call, response_serializer=_serialized),
        "Watch": grpc.unary_stream_rpc_method_handler(service.watch, response_serializer=_serialized),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    well = Health((SERVICE,), lambda: broker.leading, streams.stopped)
    health_pb2_grpc.add_HealthServicer_to_server(well, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        chosen = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError:
        chosen = 0
    if chosen == 0:
        raise CannotListen(f"cannot listen on {host} port {port} for gRPC: it is taken, or not this machine's")
    await server.start()
    return GrpcListener(host, chosen, server, streams)


class _Service:
    def __init__(self, broker: Broker, access: Access, streams: Streams) -> None:
        self._broker = broker
        self._access = access
        self._streams = streams

    async def call(self, body: bytes, context: _Context) -> Message:
        asked = await _parsed(cms_pb2.TCmsRequest(), body, context)
        fields = [field.name for field, _ in asked.ListFields()]
        if len(fields) != 1:
            given = "none is" if not fields else f"{', '.join(fields)} are"
            return _answer(None, refusal(StatusCode.WRONG_REQUEST, f"give exactly one kind of request: {given} given"))
        question = _BY_FIELD[fields[0]]
        try:
            caller = self._caller(context)
            tree = proto_trees.read(asked)
            return _answer(question, await question.ask(self._broker, tree[question.field], caller))
        except Malformed as error:
            return _answer(question, refusal(StatusCode.WRONG_REQUEST, str(error)))
        except Unauthorized as error:
            return _answer(question, refusal(StatusCode.UNAUTHORIZED, error.message))
        except Exception as error:
            _log.error("a call failed in a way nobody foresaw", question=question.field, exc_info=error)
            return _answer(question, refusal(StatusCode.ERROR, "an error of the server; its log has the details"))

    async def watch(self, body: bytes, context: _Context) -> AsyncIterator[Message]:
        asked = await _parsed(cms_pb2.TWatchRequest(), body, context)
        try:
            tree = proto_trees.read(asked)
            user = self._streams.allowed(self._caller(context), tree.get("User", ""))
        except Malformed as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Unauthorized as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, error.message)
        except Forbidden as error:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, error.message)
        async with aclosing(self._streams.changes(user, tree.get("RequestId", ""))) as changes:
            await anext(changes)
            await context.send_initial_metadata(())  # from now on nothing is missed
            async for change in changes:
                if change is not None:
                    yield proto_trees.write(change, cms_pb2.TChange())

    def _caller(self, context: _Context) -> Caller:
        if self._access.open:
            return Caller(anyone=True)
        metadata = dict(context.invocation_metadata() or ())
        certificate = context.auth_context().get("x509_pem_cert", [b""])
        return self._access.caller(bearer(str(metadata.get("authorization", ""))), next(iter(certificate), b""))


def _answer(question: Question | None, tree: Tree) -> Message:
    whole = {"Status": tree["Status"]} if question is None else {"Status": tree["Status"], question.answered_in: tree}
    return proto_trees.write(whole, cms_pb2.TCmsResponse())


async def _parsed(message: Any, body: bytes, context: _Context) -> Any:
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {message.DESCRIPTOR.name}: {error}")
    return message


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()
