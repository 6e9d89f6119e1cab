"""Every question that the broker answers, once: which message asks it, which answers, and which method knows.

gRPC and HTTP both go through ``ask``. A new question is a row here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor

from quorate.api.maintenance.action import StatusCode
from quorate.engine.logs import get_logger
from quorate.errors import QuorateError
from quorate.maintenance.broker import Broker
from quorate.maintenance.messages import Caller
from quorate.server.broker.json_trees import Malformed, Tree
from quorate.server.broker.proto import cms_pb2
from quorate.server.broker.translation import answers, questions

T = TypeVar("T")

_log = get_logger(__name__)

#: Seconds after which a caller is told to come back.
PATIENCE: Final = 120.0

_Method = Callable[[Broker], Callable[[Any, Caller], Awaitable[Any]]]


@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question. ``field`` is its name in the envelope, ``answered_in`` that of its answer."""

    field: str
    answered_in: str
    read: Callable[[Tree], Any]
    method: _Method | None
    write: Callable[[Any], Tree]
    #: May be asked without saying anything, so a GET will do.
    bare: bool = False

    @property
    def request(self) -> Descriptor:
        """The message that asks."""
        return _message("TCmsRequest", self.field)

    @property
    def response(self) -> Descriptor:
        """The message that answers."""
        return _message("TCmsResponse", self.answered_in)

    @property
    def path(self) -> str:
        """Its last part over HTTP."""
        return self.field.lower()

    async def ask(self, broker: Broker, tree: Tree, caller: Caller) -> Tree:
        """Put it to the broker. What fits the message's description but makes no sense is a wrong request."""
        if self.method is None:
            return refusal(StatusCode.ERROR, f"{self.field} is not supported")
        try:
            asked = self.read(tree)
        except Malformed as error:
            return refusal(StatusCode.WRONG_REQUEST, str(error))
        asking = self.method(broker)(asked, caller)
        try:
            # A rehearsal decides nothing, so it is answered at once and nothing is lost with it.
            return self.write(await (asking if tree.get("DryRun") else finished(asking, PATIENCE)))
        except (TimeoutError, QuorateError) as error:
            _log.warning("the broker could not answer", question=self.field, error=str(error))
            return refusal(StatusCode.ERROR_TEMP, str(error))


def refusal(code: StatusCode, reason: str) -> Tree:
    """An answer that the broker itself never gave."""
    return {"Status": {"Code": code.value, "Reason": reason}}


async def finished(asking: Awaitable[T], patience: float) -> T:
    """The answer. What was begun is finished, whoever hangs up, and also when patience ends: then TimeoutError."""
    task = asyncio.ensure_future(asking)
    try:
        done, _ = await asyncio.wait([task], timeout=patience)
    except asyncio.CancelledError:
        task.add_done_callback(_retrieved)
        raise
    if not done:
        task.add_done_callback(_retrieved)
        raise TimeoutError(f"no answer within {patience:.0f} seconds; whether anything was decided is not known")
    return task.result()


def _retrieved(task: asyncio.Future[Any]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("a question failed after its caller had gone", exc_info=task.exception())


def _message(envelope: str, field: str) -> Descriptor:
    found = cms_pb2.DESCRIPTOR.message_types_by_name[envelope].fields_by_name[field].message_type
    assert found is not None
    return found


QUESTIONS: Final = (
    Question(
        "PermissionRequest",
        "PermissionResponse",
        questions.permission_request,
        lambda broker: broker.permission_request,
        answers.permission_response,
    ),
    Question(
        "CheckRequest",
        "PermissionResponse",
        questions.check_request,
        lambda broker: broker.check_request,
        answers.permission_response,
    ),
    Question(
        "ManageRequestRequest",
        "ManageRequestResponse",
        questions.manage_request,
        lambda broker: broker.manage_request,
        answers.manage_request_response,
    ),
    Question(
        "ManagePermissionRequest",
        "ManagePermissionResponse",
        questions.manage_permission,
        lambda broker: broker.manage_permission,
        answers.manage_permission_response,
    ),
    Question(
        "Notification",
        "NotificationResponse",
        questions.notification,
        lambda broker: broker.notification,
        answers.notification_response,
    ),
    Question(
        "ManageNotificationRequest",
        "ManageNotificationResponse",
        questions.manage_notification,
        lambda broker: broker.manage_notification,
        answers.manage_notification_response,
    ),
    Question(
        "ClusterStateRequest",
        "ClusterStateResponse",
        questions.cluster_state,
        lambda broker: broker.cluster_state,
        answers.cluster_state_response,
        bare=True,
    ),
    Question(
        "GetConfigRequest",
        "GetConfigResponse",
        questions.get_config,
        lambda broker: broker.get_config,
        answers.config_response,
        bare=True,
    ),
    Question(
        "SetConfigRequest",
        "SetConfigResponse",
        questions.set_config,
        lambda broker: broker.set_config,
        answers.status_only,
    ),
    Question(
        "GetLogTailRequest",
        "GetLogTailResponse",
        questions.log_tail,
        lambda broker: broker.get_log_tail,
        answers.log_tail_response,
        bare=True,
    ),
    Question(
        "SetMarkerRequest",
        "SetMarkerResponse",
        questions.set_marker,
        lambda broker: broker.set_marker,
        answers.status_only,
    ),
    Question(
        "ResetMarkerRequest",
        "ResetMarkerResponse",
        questions.reset_marker,
        lambda broker: broker.set_marker,
        answers.status_only,
    ),
    Question("ConditionalPermissionRequest", "ConditionalPermissionResponse", lambda _: None, None, lambda tree: tree),
    Question(
        "WalleCreateTaskRequest",
        "WalleCreateTaskResponse",
        questions.walle_create,
        lambda broker: broker.walle_create,
        answers.walle_create_response,
    ),
    Question(
        "WalleListTasksRequest",
        "WalleListTasksResponse",
        questions.walle_list,
        lambda broker: broker.walle_list,
        answers.walle_list_response,
        bare=True,
    ),
    Question(
        "WalleCheckTaskRequest",
        "WalleCheckTaskResponse",
        questions.walle_check,
        lambda broker: broker.walle_check,
        answers.walle_check_response,
    ),
    Question(
        "WalleRemoveTaskRequest",
        "WalleRemoveTaskResponse",
        questions.walle_remove,
        lambda broker: broker.walle_remove,
        answers.status_only,
    ),
    Question("PlanRequest", "PlanResponse", questions.plan, lambda broker: broker.plan, answers.plan_response),
    Question(
        "OkToStopRequest",
        "OkToStopResponse",
        questions.plan,
        lambda broker: broker.ok_to_stop,
        answers.ok_to_stop_response,
    ),
    Question(
        "AcceptTimeRequest",
        "AcceptTimeResponse",
        questions.accept_time,
        lambda broker: lambda _, caller: broker.accept_time(caller),
        answers.bare_status,
    ),
)
