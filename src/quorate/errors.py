"""Every error that Quorate raises on purpose, as one tree.

QuorateError
├── ApiError                  the store's answer: a Kubernetes Status with code, reason and causes
│   ├── BadRequest            400
│   ├── Unauthorized          401
│   ├── Forbidden             403
│   ├── NotFound              404
│   ├── MethodNotAllowed      405
│   ├── NotAcceptable         406
│   ├── AlreadyExists         409
│   ├── Conflict              409  somebody wrote first: read again, decide again
│   ├── Expired               410  the resourceVersion or continue token is too old: list again
│   ├── TooLarge              413
│   ├── UnsupportedMediaType  415
│   ├── Invalid               422  the object breaks its schema or a rule; causes name the fields
│   ├── TooManyRequests       429  carries retry_after
│   ├── InternalError         500
│   ├── ServiceUnavailable    503
│   └── ServerTimeout         504  the server gave up; a write may or may not have happened
├── OutcomeUnknown            the connection broke or timed out after a write was sent: read again
├── StoreUnreachable          nothing was sent, or a read got no answer: no connection to the store
├── UndecodableObject         the store has an object that does not fit our type: a newer version wrote it
├── StorageFailure            the embedded engine's file
│   ├── StorageFull           no space left; nothing acknowledged is lost, reads go on
│   ├── StorageDamaged        the file does not check out; it is left as it is
│   └── StorageLocked         another process has it open
├── NotLeader                 a deposed leader tried to write
│   └── EpochPassed           a new leader's epoch is not above the one that somebody keeps: it steps down, goes higher
├── StillUnderWay             what a command asked for goes on, but not within the time that it was given
├── AnotherAgent              another agent works on this node: ours does not start, or stops
├── InvalidPlan               a decide() broke the rules of a Plan: a bug of ours
├── InvalidRule               a validation rule that cannot be evaluated: a bug in a kind's declaration
├── ForeignDefinition         a CRD of one of our names exists and belongs to somebody else
├── CannotListen              the server's address or port is taken or not ours
└── ConfigError               configuration, kubeconfig, flags

An error says what happened, why, and what a person can do: message, then the correction if any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class QuorateError(Exception):
    """Base of all errors raised on purpose."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that was refused, as in a Kubernetes Status' ``details.causes``."""

    reason: str
    message: str
    field: str = ""


class ApiError(QuorateError):
    """A store refused a request. Mirrors a Kubernetes ``Status`` of status Failure."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        kind: str = "",
        name: str = "",
        uid: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        self.kind = kind
        self.name = name
        self.uid = uid
        self.causes = causes
        self.retry_after = retry_after


class BadRequest(ApiError):
    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    code = 403
    reason = "Forbidden"


class NotFound(ApiError):
    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    code = 406
    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    code = 409
    reason = "AlreadyExists"


class Conflict(ApiError):
    code = 409
    reason = "Conflict"


class Expired(ApiError):
    code = 410
    reason = "Expired"


class TooLarge(ApiError):
    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    code = 500
    reason = "InternalError"


class ServiceUnavailable(ApiError):
    code = 503
    reason = "ServiceUnavailable"


class ServerTimeout(ApiError):
    code = 504
    reason = "Timeout"


class OutcomeUnknown(QuorateError):
    """A write was sent and no answer came: it may or may not have happened."""


class StoreUnreachable(QuorateError):
    """No connection to the store: nothing was written."""


class UndecodableObject(QuorateError):
    """An object that the store has and that does not fit its type here, because a newer version wrote it."""

    def __init__(self, *, kind: str, namespace: str, name: str, problem: str) -> None:
        super().__init__(f"{kind} {namespace + '/' if namespace else ''}{name} does not fit its type here: {problem}")
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.problem = problem


class StorageFailure(QuorateError):
    """The embedded engine's file cannot be used as asked."""


class StorageFull(StorageFailure):
    """The disk is full: the write was not made, everything acknowledged is safe."""


class StorageDamaged(StorageFailure):
    """The file does not check out; it was left untouched."""


class StorageLocked(StorageFailure):
    """Another process has the file open."""


class NotLeader(QuorateError):
    """This process is not, or no longer, the leader: the write was not sent."""


class EpochPassed(NotLeader):
    """Whoever keeps the epoch has seen a later one than ours: the Lease was deleted, or an old one was restored."""

    def __init__(self, message: str, *, known: int) -> None:
        super().__init__(message)
        self.known = known


class StillUnderWay(QuorateError):
    """What was asked for goes on, but not within the time that the caller gave it."""


class AnotherAgent(QuorateError):
    """Another agent works on the same node: this one does not start, or stops. The message names the other."""


class InvalidPlan(QuorateError):
    """A decide() returned a Plan that breaks the rules: a programming error."""


class ForeignDefinition(QuorateError):
    """A CustomResourceDefinition of one of our names exists without our label; it was not touched."""


class CannotListen(QuorateError):
    """The server's address or port is taken, or is not this machine's."""


class InvalidRule(QuorateError):
    """A validation rule that cannot be compiled, or not be evaluated on a value of its schema: a programming error."""


class ConfigError(QuorateError):
    """Configuration that cannot be used, with the place it came from."""
