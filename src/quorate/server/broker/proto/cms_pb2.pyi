from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[EState]
    UP: _ClassVar[EState]
    RESTART: _ClassVar[EState]
    DOWN: _ClassVar[EState]

class EMarker(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MARKER_UNKNOWN: _ClassVar[EMarker]
    MARKER_DISK_BROKEN: _ClassVar[EMarker]
    MARKER_DISK_FAULTY: _ClassVar[EMarker]
    MARKER_DISK_ACTIVE: _ClassVar[EMarker]
    MARKER_DISK_INACTIVE: _ClassVar[EMarker]

class ETenantPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NONE: _ClassVar[ETenantPolicy]
    DEFAULT: _ClassVar[ETenantPolicy]

class EAvailabilityMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_MAX_AVAILABILITY: _ClassVar[EAvailabilityMode]
    MODE_KEEP_AVAILABLE: _ClassVar[EAvailabilityMode]
    MODE_FORCE_RESTART: _ClassVar[EAvailabilityMode]
UNKNOWN: EState
UP: EState
RESTART: EState
DOWN: EState
MARKER_UNKNOWN: EMarker
MARKER_DISK_BROKEN: EMarker
MARKER_DISK_FAULTY: EMarker
MARKER_DISK_ACTIVE: EMarker
MARKER_DISK_INACTIVE: EMarker
NONE: ETenantPolicy
DEFAULT: ETenantPolicy
MODE_MAX_AVAILABILITY: EAvailabilityMode
MODE_KEEP_AVAILABLE: EAvailabilityMode
MODE_FORCE_RESTART: EAvailabilityMode

class TCmsRequest(_message.Message):
    __slots__ = ("PermissionRequest", "CheckRequest", "ManageRequestRequest", "ManagePermissionRequest", "Notification", "ManageNotificationRequest", "ClusterStateRequest", "GetConfigRequest", "SetConfigRequest", "GetLogTailRequest", "SetMarkerRequest", "ResetMarkerRequest", "ConditionalPermissionRequest", "WalleCreateTaskRequest", "WalleListTasksRequest", "WalleCheckTaskRequest", "WalleRemoveTaskRequest", "PlanRequest", "OkToStopRequest", "AcceptTimeRequest")
    PERMISSIONREQUEST_FIELD_NUMBER: _ClassVar[int]
    CHECKREQUEST_FIELD_NUMBER: _ClassVar[int]
    MANAGEREQUESTREQUEST_FIELD_NUMBER: _ClassVar[int]
    MANAGEPERMISSIONREQUEST_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATION_FIELD_NUMBER: _ClassVar[int]
    MANAGENOTIFICATIONREQUEST_FIELD_NUMBER: _ClassVar[int]
    CLUSTERSTATEREQUEST_FIELD_NUMBER: _ClassVar[int]
    GETCONFIGREQUEST_FIELD_NUMBER: _ClassVar[int]
    SETCONFIGREQUEST_FIELD_NUMBER: _ClassVar[int]
    GETLOGTAILREQUEST_FIELD_NUMBER: _ClassVar[int]
    SETMARKERREQUEST_FIELD_NUMBER: _ClassVar[int]
    RESETMARKERREQUEST_FIELD_NUMBER: _ClassVar[int]
    CONDITIONALPERMISSIONREQUEST_FIELD_NUMBER: _ClassVar[int]
    WALLECREATETASKREQUEST_FIELD_NUMBER: _ClassVar[int]
    WALLELISTTASKSREQUEST_FIELD_NUMBER: _ClassVar[int]
    WALLECHECKTASKREQUEST_FIELD_NUMBER: _ClassVar[int]
    WALLEREMOVETASKREQUEST_FIELD_NUMBER: _ClassVar[int]
    PLANREQUEST_FIELD_NUMBER: _ClassVar[int]
    OKTOSTOPREQUEST_FIELD_NUMBER: _ClassVar[int]
    ACCEPTTIMEREQUEST_FIELD_NUMBER: _ClassVar[int]
    PermissionRequest: TPermissionRequest
    CheckRequest: TCheckRequest
    ManageRequestRequest: TManageRequestRequest
    ManagePermissionRequest: TManagePermissionRequest
    Notification: TNotification
    ManageNotificationRequest: TManageNotificationRequest
    ClusterStateRequest: TClusterStateRequest
    GetConfigRequest: TGetConfigRequest
    SetConfigRequest: TSetConfigRequest
    GetLogTailRequest: TGetLogTailRequest
    SetMarkerRequest: TSetMarkerRequest
    ResetMarkerRequest: TResetMarkerRequest
    ConditionalPermissionRequest: TConditionalPermissionRequest
    WalleCreateTaskRequest: TWalleCreateTaskRequest
    WalleListTasksRequest: TWalleListTasksRequest
    WalleCheckTaskRequest: TWalleCheckTaskRequest
    WalleRemoveTaskRequest: TWalleRemoveTaskRequest
    PlanRequest: TPlanRequest
    OkToStopRequest: TOkToStopRequest
    AcceptTimeRequest: TAcceptTimeRequest
    def __init__(self, PermissionRequest: _Optional[_Union[TPermissionRequest, _Mapping]] = ..., CheckRequest: _Optional[_Union[TCheckRequest, _Mapping]] = ..., ManageRequestRequest: _Optional[_Union[TManageRequestRequest, _Mapping]] = ..., ManagePermissionRequest: _Optional[_Union[TManagePermissionRequest, _Mapping]] = ..., Notification: _Optional[_Union[TNotification, _Mapping]] = ..., ManageNotificationRequest: _Optional[_Union[TManageNotificationRequest, _Mapping]] = ..., ClusterStateRequest: _Optional[_Union[TClusterStateRequest, _Mapping]] = ..., GetConfigRequest: _Optional[_Union[TGetConfigRequest, _Mapping]] = ..., SetConfigRequest: _Optional[_Union[TSetConfigRequest, _Mapping]] = ..., GetLogTailRequest: _Optional[_Union[TGetLogTailRequest, _Mapping]] = ..., SetMarkerRequest: _Optional[_Union[TSetMarkerRequest, _Mapping]] = ..., ResetMarkerRequest: _Optional[_Union[TResetMarkerRequest, _Mapping]] = ..., ConditionalPermissionRequest: _Optional[_Union[TConditionalPermissionRequest, _Mapping]] = ..., WalleCreateTaskRequest: _Optional[_Union[TWalleCreateTaskRequest, _Mapping]] = ..., WalleListTasksRequest: _Optional[_Union[TWalleListTasksRequest, _Mapping]] = ..., WalleCheckTaskRequest: _Optional[_Union[TWalleCheckTaskRequest, _Mapping]] = ..., WalleRemoveTaskRequest: _Optional[_Union[TWalleRemoveTaskRequest, _Mapping]] = ..., PlanRequest: _Optional[_Union[TPlanRequest, _Mapping]] = ..., OkToStopRequest: _Optional[_Union[TOkToStopRequest, _Mapping]] = ..., AcceptTimeRequest: _Optional[_Union[TAcceptTimeRequest, _Mapping]] = ...) -> None: ...

class TCmsResponse(_message.Message):
    __slots__ = ("Status", "PermissionResponse", "ManageRequestResponse", "ManagePermissionResponse", "NotificationResponse", "ManageNotificationResponse", "ClusterStateResponse", "GetConfigResponse", "SetConfigResponse", "GetLogTailResponse", "SetMarkerResponse", "ResetMarkerResponse", "ConditionalPermissionResponse", "WalleCreateTaskResponse", "WalleListTasksResponse", "WalleCheckTaskResponse", "WalleRemoveTaskResponse", "PlanResponse", "OkToStopResponse", "AcceptTimeResponse")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONRESPONSE_FIELD_NUMBER: _ClassVar[int]
    MANAGEREQUESTRESPONSE_FIELD_NUMBER: _ClassVar[int]
    MANAGEPERMISSIONRESPONSE_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONRESPONSE_FIELD_NUMBER: _ClassVar[int]
    MANAGENOTIFICATIONRESPONSE_FIELD_NUMBER: _ClassVar[int]
    CLUSTERSTATERESPONSE_FIELD_NUMBER: _ClassVar[int]
    GETCONFIGRESPONSE_FIELD_NUMBER: _ClassVar[int]
    SETCONFIGRESPONSE_FIELD_NUMBER: _ClassVar[int]
    GETLOGTAILRESPONSE_FIELD_NUMBER: _ClassVar[int]
    SETMARKERRESPONSE_FIELD_NUMBER: _ClassVar[int]
    RESETMARKERRESPONSE_FIELD_NUMBER: _ClassVar[int]
    CONDITIONALPERMISSIONRESPONSE_FIELD_NUMBER: _ClassVar[int]
    WALLECREATETASKRESPONSE_FIELD_NUMBER: _ClassVar[int]
    WALLELISTTASKSRESPONSE_FIELD_NUMBER: _ClassVar[int]
    WALLECHECKTASKRESPONSE_FIELD_NUMBER: _ClassVar[int]
    WALLEREMOVETASKRESPONSE_FIELD_NUMBER: _ClassVar[int]
    PLANRESPONSE_FIELD_NUMBER: _ClassVar[int]
    OKTOSTOPRESPONSE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTTIMERESPONSE_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    PermissionResponse: TPermissionResponse
    ManageRequestResponse: TManageRequestResponse
    ManagePermissionResponse: TManagePermissionResponse
    NotificationResponse: TNotificationResponse
    ManageNotificationResponse: TManageNotificationResponse
    ClusterStateResponse: TClusterStateResponse
    GetConfigResponse: TGetConfigResponse
    SetConfigResponse: TSetConfigResponse
    GetLogTailResponse: TGetLogTailResponse
    SetMarkerResponse: TSetMarkerResponse
    ResetMarkerResponse: TResetMarkerResponse
    ConditionalPermissionResponse: TConditionalPermissionResponse
    WalleCreateTaskResponse: TWalleCreateTaskResponse
    WalleListTasksResponse: TWalleListTasksResponse
    WalleCheckTaskResponse: TWalleCheckTaskResponse
    WalleRemoveTaskResponse: TWalleRemoveTaskResponse
    PlanResponse: TPlanResponse
    OkToStopResponse: TOkToStopResponse
    AcceptTimeResponse: TAcceptTimeResponse
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., PermissionResponse: _Optional[_Union[TPermissionResponse, _Mapping]] = ..., ManageRequestResponse: _Optional[_Union[TManageRequestResponse, _Mapping]] = ..., ManagePermissionResponse: _Optional[_Union[TManagePermissionResponse, _Mapping]] = ..., NotificationResponse: _Optional[_Union[TNotificationResponse, _Mapping]] = ..., ManageNotificationResponse: _Optional[_Union[TManageNotificationResponse, _Mapping]] = ..., ClusterStateResponse: _Optional[_Union[TClusterStateResponse, _Mapping]] = ..., GetConfigResponse: _Optional[_Union[TGetConfigResponse, _Mapping]] = ..., SetConfigResponse: _Optional[_Union[TSetConfigResponse, _Mapping]] = ..., GetLogTailResponse: _Optional[_Union[TGetLogTailResponse, _Mapping]] = ..., SetMarkerResponse: _Optional[_Union[TSetMarkerResponse, _Mapping]] = ..., ResetMarkerResponse: _Optional[_Union[TResetMarkerResponse, _Mapping]] = ..., ConditionalPermissionResponse: _Optional[_Union[TConditionalPermissionResponse, _Mapping]] = ..., WalleCreateTaskResponse: _Optional[_Union[TWalleCreateTaskResponse, _Mapping]] = ..., WalleListTasksResponse: _Optional[_Union[TWalleListTasksResponse, _Mapping]] = ..., WalleCheckTaskResponse: _Optional[_Union[TWalleCheckTaskResponse, _Mapping]] = ..., WalleRemoveTaskResponse: _Optional[_Union[TWalleRemoveTaskResponse, _Mapping]] = ..., PlanResponse: _Optional[_Union[TPlanResponse, _Mapping]] = ..., OkToStopResponse: _Optional[_Union[TOkToStopResponse, _Mapping]] = ..., AcceptTimeResponse: _Optional[_Union[TAcceptTimeResponse, _Mapping]] = ...) -> None: ...

class TStatus(_message.Message):
    __slots__ = ("Code", "Reason")
    class ECode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TStatus.ECode]
        OK: _ClassVar[TStatus.ECode]
        ALLOW: _ClassVar[TStatus.ECode]
        ALLOW_PARTIAL: _ClassVar[TStatus.ECode]
        DISALLOW: _ClassVar[TStatus.ECode]
        DISALLOW_TEMP: _ClassVar[TStatus.ECode]
        WRONG_REQUEST: _ClassVar[TStatus.ECode]
        ERROR: _ClassVar[TStatus.ECode]
        ERROR_TEMP: _ClassVar[TStatus.ECode]
        UNAUTHORIZED: _ClassVar[TStatus.ECode]
        NO_SUCH_HOST: _ClassVar[TStatus.ECode]
        NO_SUCH_DEVICE: _ClassVar[TStatus.ECode]
        NO_SUCH_SERVICE: _ClassVar[TStatus.ECode]
    UNKNOWN: TStatus.ECode
    OK: TStatus.ECode
    ALLOW: TStatus.ECode
    ALLOW_PARTIAL: TStatus.ECode
    DISALLOW: TStatus.ECode
    DISALLOW_TEMP: TStatus.ECode
    WRONG_REQUEST: TStatus.ECode
    ERROR: TStatus.ECode
    ERROR_TEMP: TStatus.ECode
    UNAUTHORIZED: TStatus.ECode
    NO_SUCH_HOST: TStatus.ECode
    NO_SUCH_DEVICE: TStatus.ECode
    NO_SUCH_SERVICE: TStatus.ECode
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    Code: TStatus.ECode
    Reason: str
    def __init__(self, Code: _Optional[_Union[TStatus.ECode, str]] = ..., Reason: _Optional[str] = ...) -> None: ...

class TAction(_message.Message):
    __slots__ = ("Type", "Host", "Services", "Devices", "Duration", "Tenant", "Issue")
    class EType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TAction.EType]
        START_SERVICES: _ClassVar[TAction.EType]
        RESTART_SERVICES: _ClassVar[TAction.EType]
        STOP_SERVICES: _ClassVar[TAction.EType]
        ADD_HOST: _ClassVar[TAction.EType]
        SHUTDOWN_HOST: _ClassVar[TAction.EType]
        DECOMMISSION_HOST: _ClassVar[TAction.EType]
        ADD_DEVICES: _ClassVar[TAction.EType]
        REPLACE_DEVICES: _ClassVar[TAction.EType]
        REMOVE_DEVICES: _ClassVar[TAction.EType]
    UNKNOWN: TAction.EType
    START_SERVICES: TAction.EType
    RESTART_SERVICES: TAction.EType
    STOP_SERVICES: TAction.EType
    ADD_HOST: TAction.EType
    SHUTDOWN_HOST: TAction.EType
    DECOMMISSION_HOST: TAction.EType
    ADD_DEVICES: TAction.EType
    REPLACE_DEVICES: TAction.EType
    REMOVE_DEVICES: TAction.EType
    class TBlocker(_message.Message):
        __slots__ = ("Object", "Lock", "Id", "Owner", "Until")
        class ELock(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            NO_LOCK: _ClassVar[TAction.TBlocker.ELock]
            PERMISSION: _ClassVar[TAction.TBlocker.ELock]
            NOTIFICATION: _ClassVar[TAction.TBlocker.ELock]
            SCHEDULED_REQUEST: _ClassVar[TAction.TBlocker.ELock]
            TEMPORARY: _ClassVar[TAction.TBlocker.ELock]
            TRANSITION: _ClassVar[TAction.TBlocker.ELock]
        NO_LOCK: TAction.TBlocker.ELock
        PERMISSION: TAction.TBlocker.ELock
        NOTIFICATION: TAction.TBlocker.ELock
        SCHEDULED_REQUEST: TAction.TBlocker.ELock
        TEMPORARY: TAction.TBlocker.ELock
        TRANSITION: TAction.TBlocker.ELock
        OBJECT_FIELD_NUMBER: _ClassVar[int]
        LOCK_FIELD_NUMBER: _ClassVar[int]
        ID_FIELD_NUMBER: _ClassVar[int]
        OWNER_FIELD_NUMBER: _ClassVar[int]
        UNTIL_FIELD_NUMBER: _ClassVar[int]
        Object: str
        Lock: TAction.TBlocker.ELock
        Id: str
        Owner: str
        Until: int
        def __init__(self, Object: _Optional[str] = ..., Lock: _Optional[_Union[TAction.TBlocker.ELock, str]] = ..., Id: _Optional[str] = ..., Owner: _Optional[str] = ..., Until: _Optional[int] = ...) -> None: ...
    class TIssue(_message.Message):
        __slots__ = ("Type", "Message", "Blockers")
        class EType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            UNKNOWN: _ClassVar[TAction.TIssue.EType]
            GENERIC: _ClassVar[TAction.TIssue.EType]
            TOO_MANY_UNAVAILABLE_VDISKS: _ClassVar[TAction.TIssue.EType]
            TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS: _ClassVar[TAction.TIssue.EType]
            DISABLED_NODES_LIMIT_REACHED: _ClassVar[TAction.TIssue.EType]
            TENANT_DISABLED_NODES_LIMIT_REACHED: _ClassVar[TAction.TIssue.EType]
        UNKNOWN: TAction.TIssue.EType
        GENERIC: TAction.TIssue.EType
        TOO_MANY_UNAVAILABLE_VDISKS: TAction.TIssue.EType
        TOO_MANY_UNAVAILABLE_STATE_STORAGE_RINGS: TAction.TIssue.EType
        DISABLED_NODES_LIMIT_REACHED: TAction.TIssue.EType
        TENANT_DISABLED_NODES_LIMIT_REACHED: TAction.TIssue.EType
        TYPE_FIELD_NUMBER: _ClassVar[int]
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        BLOCKERS_FIELD_NUMBER: _ClassVar[int]
        Type: TAction.TIssue.EType
        Message: str
        Blockers: _containers.RepeatedCompositeFieldContainer[TAction.TBlocker]
        def __init__(self, Type: _Optional[_Union[TAction.TIssue.EType, str]] = ..., Message: _Optional[str] = ..., Blockers: _Optional[_Iterable[_Union[TAction.TBlocker, _Mapping]]] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ISSUE_FIELD_NUMBER: _ClassVar[int]
    Type: TAction.EType
    Host: str
    Services: _containers.RepeatedScalarFieldContainer[str]
    Devices: _containers.RepeatedScalarFieldContainer[str]
    Duration: int
    Tenant: str
    Issue: TAction.TIssue
    def __init__(self, Type: _Optional[_Union[TAction.EType, str]] = ..., Host: _Optional[str] = ..., Services: _Optional[_Iterable[str]] = ..., Devices: _Optional[_Iterable[str]] = ..., Duration: _Optional[int] = ..., Tenant: _Optional[str] = ..., Issue: _Optional[_Union[TAction.TIssue, _Mapping]] = ...) -> None: ...

class TPermissionRequest(_message.Message):
    __slots__ = ("User", "Actions", "PartialPermissionAllowed", "Schedule", "DryRun", "Reason", "Duration", "TenantPolicy", "AvailabilityMode", "Priority", "Run")
    USER_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    PARTIALPERMISSIONALLOWED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    DRYRUN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    TENANTPOLICY_FIELD_NUMBER: _ClassVar[int]
    AVAILABILITYMODE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    User: str
    Actions: _containers.RepeatedCompositeFieldContainer[TAction]
    PartialPermissionAllowed: bool
    Schedule: bool
    DryRun: bool
    Reason: str
    Duration: int
    TenantPolicy: ETenantPolicy
    AvailabilityMode: EAvailabilityMode
    Priority: int
    Run: str
    def __init__(self, User: _Optional[str] = ..., Actions: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ..., PartialPermissionAllowed: _Optional[bool] = ..., Schedule: _Optional[bool] = ..., DryRun: _Optional[bool] = ..., Reason: _Optional[str] = ..., Duration: _Optional[int] = ..., TenantPolicy: _Optional[_Union[ETenantPolicy, str]] = ..., AvailabilityMode: _Optional[_Union[EAvailabilityMode, str]] = ..., Priority: _Optional[int] = ..., Run: _Optional[str] = ...) -> None: ...

class TPermissionExtension(_message.Message):
    __slots__ = ("Type", "Hosts")
    class EExtensionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TPermissionExtension.EExtensionType]
        HostInfo: _ClassVar[TPermissionExtension.EExtensionType]
    UNKNOWN: TPermissionExtension.EExtensionType
    HostInfo: TPermissionExtension.EExtensionType
    class THostInfo(_message.Message):
        __slots__ = ("Name", "State", "NodeId", "InterconnectPort")
        NAME_FIELD_NUMBER: _ClassVar[int]
        STATE_FIELD_NUMBER: _ClassVar[int]
        NODEID_FIELD_NUMBER: _ClassVar[int]
        INTERCONNECTPORT_FIELD_NUMBER: _ClassVar[int]
        Name: str
        State: EState
        NodeId: int
        InterconnectPort: int
        def __init__(self, Name: _Optional[str] = ..., State: _Optional[_Union[EState, str]] = ..., NodeId: _Optional[int] = ..., InterconnectPort: _Optional[int] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    Type: TPermissionExtension.EExtensionType
    Hosts: _containers.RepeatedCompositeFieldContainer[TPermissionExtension.THostInfo]
    def __init__(self, Type: _Optional[_Union[TPermissionExtension.EExtensionType, str]] = ..., Hosts: _Optional[_Iterable[_Union[TPermissionExtension.THostInfo, _Mapping]]] = ...) -> None: ...

class TPermission(_message.Message):
    __slots__ = ("Id", "Action", "Deadline", "Extentions", "Run", "Cost")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    EXTENTIONS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    Id: str
    Action: TAction
    Deadline: int
    Extentions: _containers.RepeatedCompositeFieldContainer[TPermissionExtension]
    Run: str
    Cost: str
    def __init__(self, Id: _Optional[str] = ..., Action: _Optional[_Union[TAction, _Mapping]] = ..., Deadline: _Optional[int] = ..., Extentions: _Optional[_Iterable[_Union[TPermissionExtension, _Mapping]]] = ..., Run: _Optional[str] = ..., Cost: _Optional[str] = ...) -> None: ...

class TPermissionResponse(_message.Message):
    __slots__ = ("Status", "RequestId", "Permissions", "Deadline", "Refused")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REQUESTID_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    RequestId: str
    Permissions: _containers.RepeatedCompositeFieldContainer[TPermission]
    Deadline: int
    Refused: _containers.RepeatedCompositeFieldContainer[TAction]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., RequestId: _Optional[str] = ..., Permissions: _Optional[_Iterable[_Union[TPermission, _Mapping]]] = ..., Deadline: _Optional[int] = ..., Refused: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ...) -> None: ...

class TCheckRequest(_message.Message):
    __slots__ = ("User", "RequestId", "DryRun", "AvailabilityMode")
    USER_FIELD_NUMBER: _ClassVar[int]
    REQUESTID_FIELD_NUMBER: _ClassVar[int]
    DRYRUN_FIELD_NUMBER: _ClassVar[int]
    AVAILABILITYMODE_FIELD_NUMBER: _ClassVar[int]
    User: str
    RequestId: str
    DryRun: bool
    AvailabilityMode: EAvailabilityMode
    def __init__(self, User: _Optional[str] = ..., RequestId: _Optional[str] = ..., DryRun: _Optional[bool] = ..., AvailabilityMode: _Optional[_Union[EAvailabilityMode, str]] = ...) -> None: ...

class TManageRequestRequest(_message.Message):
    __slots__ = ("User", "Command", "RequestId", "DryRun")
    class ECommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TManageRequestRequest.ECommand]
        LIST: _ClassVar[TManageRequestRequest.ECommand]
        GET: _ClassVar[TManageRequestRequest.ECommand]
        REJECT: _ClassVar[TManageRequestRequest.ECommand]
    UNKNOWN: TManageRequestRequest.ECommand
    LIST: TManageRequestRequest.ECommand
    GET: TManageRequestRequest.ECommand
    REJECT: TManageRequestRequest.ECommand
    USER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    REQUESTID_FIELD_NUMBER: _ClassVar[int]
    DRYRUN_FIELD_NUMBER: _ClassVar[int]
    User: str
    Command: TManageRequestRequest.ECommand
    RequestId: str
    DryRun: bool
    def __init__(self, User: _Optional[str] = ..., Command: _Optional[_Union[TManageRequestRequest.ECommand, str]] = ..., RequestId: _Optional[str] = ..., DryRun: _Optional[bool] = ...) -> None: ...

class TManageRequestResponse(_message.Message):
    __slots__ = ("Status", "Requests")
    class TScheduledRequest(_message.Message):
        __slots__ = ("RequestId", "Owner", "Actions", "PartialPermissionAllowed", "Reason", "AvailabilityMode", "Priority", "Position", "Run")
        REQUESTID_FIELD_NUMBER: _ClassVar[int]
        OWNER_FIELD_NUMBER: _ClassVar[int]
        ACTIONS_FIELD_NUMBER: _ClassVar[int]
        PARTIALPERMISSIONALLOWED_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        AVAILABILITYMODE_FIELD_NUMBER: _ClassVar[int]
        PRIORITY_FIELD_NUMBER: _ClassVar[int]
        POSITION_FIELD_NUMBER: _ClassVar[int]
        RUN_FIELD_NUMBER: _ClassVar[int]
        RequestId: str
        Owner: str
        Actions: _containers.RepeatedCompositeFieldContainer[TAction]
        PartialPermissionAllowed: bool
        Reason: str
        AvailabilityMode: EAvailabilityMode
        Priority: int
        Position: int
        Run: str
        def __init__(self, RequestId: _Optional[str] = ..., Owner: _Optional[str] = ..., Actions: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ..., PartialPermissionAllowed: _Optional[bool] = ..., Reason: _Optional[str] = ..., AvailabilityMode: _Optional[_Union[EAvailabilityMode, str]] = ..., Priority: _Optional[int] = ..., Position: _Optional[int] = ..., Run: _Optional[str] = ...) -> None: ...
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Requests: _containers.RepeatedCompositeFieldContainer[TManageRequestResponse.TScheduledRequest]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Requests: _Optional[_Iterable[_Union[TManageRequestResponse.TScheduledRequest, _Mapping]]] = ...) -> None: ...

class TManagePermissionRequest(_message.Message):
    __slots__ = ("User", "Command", "Permissions", "Deadline", "DryRun")
    class ECommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TManagePermissionRequest.ECommand]
        LIST: _ClassVar[TManagePermissionRequest.ECommand]
        GET: _ClassVar[TManagePermissionRequest.ECommand]
        DONE: _ClassVar[TManagePermissionRequest.ECommand]
        EXTEND: _ClassVar[TManagePermissionRequest.ECommand]
        REJECT: _ClassVar[TManagePermissionRequest.ECommand]
    UNKNOWN: TManagePermissionRequest.ECommand
    LIST: TManagePermissionRequest.ECommand
    GET: TManagePermissionRequest.ECommand
    DONE: TManagePermissionRequest.ECommand
    EXTEND: TManagePermissionRequest.ECommand
    REJECT: TManagePermissionRequest.ECommand
    USER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    DRYRUN_FIELD_NUMBER: _ClassVar[int]
    User: str
    Command: TManagePermissionRequest.ECommand
    Permissions: _containers.RepeatedScalarFieldContainer[str]
    Deadline: int
    DryRun: bool
    def __init__(self, User: _Optional[str] = ..., Command: _Optional[_Union[TManagePermissionRequest.ECommand, str]] = ..., Permissions: _Optional[_Iterable[str]] = ..., Deadline: _Optional[int] = ..., DryRun: _Optional[bool] = ...) -> None: ...

class TManagePermissionResponse(_message.Message):
    __slots__ = ("Status", "Permissions")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Permissions: _containers.RepeatedCompositeFieldContainer[TPermission]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Permissions: _Optional[_Iterable[_Union[TPermission, _Mapping]]] = ...) -> None: ...

class TNotification(_message.Message):
    __slots__ = ("User", "Actions", "Time", "Reason")
    USER_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    User: str
    Actions: _containers.RepeatedCompositeFieldContainer[TAction]
    Time: int
    Reason: str
    def __init__(self, User: _Optional[str] = ..., Actions: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ..., Time: _Optional[int] = ..., Reason: _Optional[str] = ...) -> None: ...

class TNotificationResponse(_message.Message):
    __slots__ = ("Status", "NotificationId")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONID_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    NotificationId: str
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., NotificationId: _Optional[str] = ...) -> None: ...

class TManageNotificationRequest(_message.Message):
    __slots__ = ("User", "Command", "NotificationId", "DryRun")
    class ECommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TManageNotificationRequest.ECommand]
        LIST: _ClassVar[TManageNotificationRequest.ECommand]
        GET: _ClassVar[TManageNotificationRequest.ECommand]
        REJECT: _ClassVar[TManageNotificationRequest.ECommand]
    UNKNOWN: TManageNotificationRequest.ECommand
    LIST: TManageNotificationRequest.ECommand
    GET: TManageNotificationRequest.ECommand
    REJECT: TManageNotificationRequest.ECommand
    USER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONID_FIELD_NUMBER: _ClassVar[int]
    DRYRUN_FIELD_NUMBER: _ClassVar[int]
    User: str
    Command: TManageNotificationRequest.ECommand
    NotificationId: str
    DryRun: bool
    def __init__(self, User: _Optional[str] = ..., Command: _Optional[_Union[TManageNotificationRequest.ECommand, str]] = ..., NotificationId: _Optional[str] = ..., DryRun: _Optional[bool] = ...) -> None: ...

class TManageNotificationResponse(_message.Message):
    __slots__ = ("Status", "Notifications")
    class TStoredNotification(_message.Message):
        __slots__ = ("NotificationId", "Owner", "Actions", "Time", "Reason")
        NOTIFICATIONID_FIELD_NUMBER: _ClassVar[int]
        OWNER_FIELD_NUMBER: _ClassVar[int]
        ACTIONS_FIELD_NUMBER: _ClassVar[int]
        TIME_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        NotificationId: str
        Owner: str
        Actions: _containers.RepeatedCompositeFieldContainer[TAction]
        Time: int
        Reason: str
        def __init__(self, NotificationId: _Optional[str] = ..., Owner: _Optional[str] = ..., Actions: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ..., Time: _Optional[int] = ..., Reason: _Optional[str] = ...) -> None: ...
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Notifications: _containers.RepeatedCompositeFieldContainer[TManageNotificationResponse.TStoredNotification]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Notifications: _Optional[_Iterable[_Union[TManageNotificationResponse.TStoredNotification, _Mapping]]] = ...) -> None: ...

class TClusterStateRequest(_message.Message):
    __slots__ = ("Hosts",)
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, Hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class TServiceState(_message.Message):
    __slots__ = ("Name", "State", "Version", "Timestamp")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    Name: str
    State: EState
    Version: str
    Timestamp: int
    def __init__(self, Name: _Optional[str] = ..., State: _Optional[_Union[EState, str]] = ..., Version: _Optional[str] = ..., Timestamp: _Optional[int] = ...) -> None: ...

class TDeviceState(_message.Message):
    __slots__ = ("Name", "State", "Timestamp", "Markers", "Title")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    MARKERS_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    Name: str
    State: EState
    Timestamp: int
    Markers: _containers.RepeatedScalarFieldContainer[EMarker]
    Title: str
    def __init__(self, Name: _Optional[str] = ..., State: _Optional[_Union[EState, str]] = ..., Timestamp: _Optional[int] = ..., Markers: _Optional[_Iterable[_Union[EMarker, str]]] = ..., Title: _Optional[str] = ...) -> None: ...

class TLocation(_message.Message):
    __slots__ = ("DataCenter", "Room", "Rack")
    DATACENTER_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    DataCenter: str
    Room: str
    Rack: str
    def __init__(self, DataCenter: _Optional[str] = ..., Room: _Optional[str] = ..., Rack: _Optional[str] = ...) -> None: ...

class THostState(_message.Message):
    __slots__ = ("Name", "State", "Timestamp", "NodeId", "InterconnectPort", "Markers", "Location", "StartTimeSeconds", "Services", "Devices", "Tenant")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    NODEID_FIELD_NUMBER: _ClassVar[int]
    INTERCONNECTPORT_FIELD_NUMBER: _ClassVar[int]
    MARKERS_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    STARTTIMESECONDS_FIELD_NUMBER: _ClassVar[int]
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    Name: str
    State: EState
    Timestamp: int
    NodeId: int
    InterconnectPort: int
    Markers: _containers.RepeatedScalarFieldContainer[EMarker]
    Location: TLocation
    StartTimeSeconds: int
    Services: _containers.RepeatedCompositeFieldContainer[TServiceState]
    Devices: _containers.RepeatedCompositeFieldContainer[TDeviceState]
    Tenant: str
    def __init__(self, Name: _Optional[str] = ..., State: _Optional[_Union[EState, str]] = ..., Timestamp: _Optional[int] = ..., NodeId: _Optional[int] = ..., InterconnectPort: _Optional[int] = ..., Markers: _Optional[_Iterable[_Union[EMarker, str]]] = ..., Location: _Optional[_Union[TLocation, _Mapping]] = ..., StartTimeSeconds: _Optional[int] = ..., Services: _Optional[_Iterable[_Union[TServiceState, _Mapping]]] = ..., Devices: _Optional[_Iterable[_Union[TDeviceState, _Mapping]]] = ..., Tenant: _Optional[str] = ...) -> None: ...

class TClusterState(_message.Message):
    __slots__ = ("Name", "Hosts", "Timestamp")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    Name: str
    Hosts: _containers.RepeatedCompositeFieldContainer[THostState]
    Timestamp: int
    def __init__(self, Name: _Optional[str] = ..., Hosts: _Optional[_Iterable[_Union[THostState, _Mapping]]] = ..., Timestamp: _Optional[int] = ...) -> None: ...

class TClusterStateResponse(_message.Message):
    __slots__ = ("Status", "State")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    State: TClusterState
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., State: _Optional[_Union[TClusterState, _Mapping]] = ...) -> None: ...

class TLimits(_message.Message):
    __slots__ = ("DisabledNodesLimit", "DisabledNodesRatioLimit")
    DISABLEDNODESLIMIT_FIELD_NUMBER: _ClassVar[int]
    DISABLEDNODESRATIOLIMIT_FIELD_NUMBER: _ClassVar[int]
    DisabledNodesLimit: int
    DisabledNodesRatioLimit: int
    def __init__(self, DisabledNodesLimit: _Optional[int] = ..., DisabledNodesRatioLimit: _Optional[int] = ...) -> None: ...

class TMonitorConfig(_message.Message):
    __slots__ = ("EnableAutoUpdates", "UpdateInterval", "IgnoredDowntimeGap", "BrokenTimeout", "BrokenPrepTimeout", "FaultyPrepTimeout", "DefaultStateLimit", "GoodStateLimit", "GuardWindow", "DataCenterRatio", "RoomRatio", "RackRatio", "FaultyDisksPerNode")
    ENABLEAUTOUPDATES_FIELD_NUMBER: _ClassVar[int]
    UPDATEINTERVAL_FIELD_NUMBER: _ClassVar[int]
    IGNOREDDOWNTIMEGAP_FIELD_NUMBER: _ClassVar[int]
    BROKENTIMEOUT_FIELD_NUMBER: _ClassVar[int]
    BROKENPREPTIMEOUT_FIELD_NUMBER: _ClassVar[int]
    FAULTYPREPTIMEOUT_FIELD_NUMBER: _ClassVar[int]
    DEFAULTSTATELIMIT_FIELD_NUMBER: _ClassVar[int]
    GOODSTATELIMIT_FIELD_NUMBER: _ClassVar[int]
    GUARDWINDOW_FIELD_NUMBER: _ClassVar[int]
    DATACENTERRATIO_FIELD_NUMBER: _ClassVar[int]
    ROOMRATIO_FIELD_NUMBER: _ClassVar[int]
    RACKRATIO_FIELD_NUMBER: _ClassVar[int]
    FAULTYDISKSPERNODE_FIELD_NUMBER: _ClassVar[int]
    EnableAutoUpdates: bool
    UpdateInterval: int
    IgnoredDowntimeGap: int
    BrokenTimeout: int
    BrokenPrepTimeout: int
    FaultyPrepTimeout: int
    DefaultStateLimit: int
    GoodStateLimit: int
    GuardWindow: int
    DataCenterRatio: int
    RoomRatio: int
    RackRatio: int
    FaultyDisksPerNode: int
    def __init__(self, EnableAutoUpdates: _Optional[bool] = ..., UpdateInterval: _Optional[int] = ..., IgnoredDowntimeGap: _Optional[int] = ..., BrokenTimeout: _Optional[int] = ..., BrokenPrepTimeout: _Optional[int] = ..., FaultyPrepTimeout: _Optional[int] = ..., DefaultStateLimit: _Optional[int] = ..., GoodStateLimit: _Optional[int] = ..., GuardWindow: _Optional[int] = ..., DataCenterRatio: _Optional[int] = ..., RoomRatio: _Optional[int] = ..., RackRatio: _Optional[int] = ..., FaultyDisksPerNode: _Optional[int] = ...) -> None: ...

class TLogConfig(_message.Message):
    __slots__ = ("DefaultLevel", "TTL")
    class ELevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ENABLED: _ClassVar[TLogConfig.ELevel]
        DISABLED: _ClassVar[TLogConfig.ELevel]
    ENABLED: TLogConfig.ELevel
    DISABLED: TLogConfig.ELevel
    DEFAULTLEVEL_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    DefaultLevel: TLogConfig.ELevel
    TTL: int
    def __init__(self, DefaultLevel: _Optional[_Union[TLogConfig.ELevel, str]] = ..., TTL: _Optional[int] = ...) -> None: ...

class TQuotas(_message.Message):
    __slots__ = ("Requests", "Actions", "Duration")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    Requests: int
    Actions: int
    Duration: int
    def __init__(self, Requests: _Optional[int] = ..., Actions: _Optional[int] = ..., Duration: _Optional[int] = ...) -> None: ...

class TCmsConfig(_message.Message):
    __slots__ = ("DefaultRetryTime", "DefaultPermissionDuration", "TenantLimits", "ClusterLimits", "MonitorConfig", "LogConfig", "Quotas", "Priorities")
    DEFAULTRETRYTIME_FIELD_NUMBER: _ClassVar[int]
    DEFAULTPERMISSIONDURATION_FIELD_NUMBER: _ClassVar[int]
    TENANTLIMITS_FIELD_NUMBER: _ClassVar[int]
    CLUSTERLIMITS_FIELD_NUMBER: _ClassVar[int]
    MONITORCONFIG_FIELD_NUMBER: _ClassVar[int]
    LOGCONFIG_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    PRIORITIES_FIELD_NUMBER: _ClassVar[int]
    DefaultRetryTime: int
    DefaultPermissionDuration: int
    TenantLimits: TLimits
    ClusterLimits: TLimits
    MonitorConfig: TMonitorConfig
    LogConfig: TLogConfig
    Quotas: TQuotas
    Priorities: _containers.RepeatedCompositeFieldContainer[TCallerPriority]
    def __init__(self, DefaultRetryTime: _Optional[int] = ..., DefaultPermissionDuration: _Optional[int] = ..., TenantLimits: _Optional[_Union[TLimits, _Mapping]] = ..., ClusterLimits: _Optional[_Union[TLimits, _Mapping]] = ..., MonitorConfig: _Optional[_Union[TMonitorConfig, _Mapping]] = ..., LogConfig: _Optional[_Union[TLogConfig, _Mapping]] = ..., Quotas: _Optional[_Union[TQuotas, _Mapping]] = ..., Priorities: _Optional[_Iterable[_Union[TCallerPriority, _Mapping]]] = ...) -> None: ...

class TCallerPriority(_message.Message):
    __slots__ = ("User", "Priority")
    USER_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    User: str
    Priority: int
    def __init__(self, User: _Optional[str] = ..., Priority: _Optional[int] = ...) -> None: ...

class TGetConfigRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TGetConfigResponse(_message.Message):
    __slots__ = ("Status", "Config")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Config: TCmsConfig
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Config: _Optional[_Union[TCmsConfig, _Mapping]] = ...) -> None: ...

class TSetConfigRequest(_message.Message):
    __slots__ = ("Config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    Config: TCmsConfig
    def __init__(self, Config: _Optional[_Union[TCmsConfig, _Mapping]] = ...) -> None: ...

class TSetConfigResponse(_message.Message):
    __slots__ = ("Status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ...) -> None: ...

class TLogRecord(_message.Message):
    __slots__ = ("Timestamp", "RecordType", "Data", "Message")
    class EType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TLogRecord.EType]
        CMS_LOADED: _ClassVar[TLogRecord.EType]
        PDISK_MONITOR_ACTION: _ClassVar[TLogRecord.EType]
        MARKERS_MODIFICATION: _ClassVar[TLogRecord.EType]
        PERMISSION_GRANTED: _ClassVar[TLogRecord.EType]
        PERMISSION_ENDED: _ClassVar[TLogRecord.EType]
    UNKNOWN: TLogRecord.EType
    CMS_LOADED: TLogRecord.EType
    PDISK_MONITOR_ACTION: TLogRecord.EType
    MARKERS_MODIFICATION: TLogRecord.EType
    PERMISSION_GRANTED: TLogRecord.EType
    PERMISSION_ENDED: TLogRecord.EType
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    RECORDTYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    Timestamp: int
    RecordType: TLogRecord.EType
    Data: _struct_pb2.Struct
    Message: str
    def __init__(self, Timestamp: _Optional[int] = ..., RecordType: _Optional[_Union[TLogRecord.EType, str]] = ..., Data: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., Message: _Optional[str] = ...) -> None: ...

class TLogFilter(_message.Message):
    __slots__ = ("RecordType", "MinTimestamp", "MaxTimestamp", "Limit", "Offset")
    RECORDTYPE_FIELD_NUMBER: _ClassVar[int]
    MINTIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    MAXTIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    RecordType: TLogRecord.EType
    MinTimestamp: int
    MaxTimestamp: int
    Limit: int
    Offset: int
    def __init__(self, RecordType: _Optional[_Union[TLogRecord.EType, str]] = ..., MinTimestamp: _Optional[int] = ..., MaxTimestamp: _Optional[int] = ..., Limit: _Optional[int] = ..., Offset: _Optional[int] = ...) -> None: ...

class TGetLogTailRequest(_message.Message):
    __slots__ = ("LogFilter", "IncludeData", "TextFormat")
    class ETextFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[TGetLogTailRequest.ETextFormat]
        SHORT: _ClassVar[TGetLogTailRequest.ETextFormat]
        DETAILED: _ClassVar[TGetLogTailRequest.ETextFormat]
    NONE: TGetLogTailRequest.ETextFormat
    SHORT: TGetLogTailRequest.ETextFormat
    DETAILED: TGetLogTailRequest.ETextFormat
    LOGFILTER_FIELD_NUMBER: _ClassVar[int]
    INCLUDEDATA_FIELD_NUMBER: _ClassVar[int]
    TEXTFORMAT_FIELD_NUMBER: _ClassVar[int]
    LogFilter: TLogFilter
    IncludeData: bool
    TextFormat: TGetLogTailRequest.ETextFormat
    def __init__(self, LogFilter: _Optional[_Union[TLogFilter, _Mapping]] = ..., IncludeData: _Optional[bool] = ..., TextFormat: _Optional[_Union[TGetLogTailRequest.ETextFormat, str]] = ...) -> None: ...

class TGetLogTailResponse(_message.Message):
    __slots__ = ("Status", "LogRecords")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LOGRECORDS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    LogRecords: _containers.RepeatedCompositeFieldContainer[TLogRecord]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., LogRecords: _Optional[_Iterable[_Union[TLogRecord, _Mapping]]] = ...) -> None: ...

class TItems(_message.Message):
    __slots__ = ("Hosts", "Nodes", "PDisks", "VDisks")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PDISKS_FIELD_NUMBER: _ClassVar[int]
    VDISKS_FIELD_NUMBER: _ClassVar[int]
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    Nodes: _containers.RepeatedScalarFieldContainer[int]
    PDisks: _containers.RepeatedScalarFieldContainer[str]
    VDisks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, Hosts: _Optional[_Iterable[str]] = ..., Nodes: _Optional[_Iterable[int]] = ..., PDisks: _Optional[_Iterable[str]] = ..., VDisks: _Optional[_Iterable[str]] = ...) -> None: ...

class TSetMarkerRequest(_message.Message):
    __slots__ = ("Marker", "Items", "UserToken")
    MARKER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    USERTOKEN_FIELD_NUMBER: _ClassVar[int]
    Marker: EMarker
    Items: TItems
    UserToken: str
    def __init__(self, Marker: _Optional[_Union[EMarker, str]] = ..., Items: _Optional[_Union[TItems, _Mapping]] = ..., UserToken: _Optional[str] = ...) -> None: ...

class TSetMarkerResponse(_message.Message):
    __slots__ = ("Status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ...) -> None: ...

class TResetMarkerRequest(_message.Message):
    __slots__ = ("Marker", "Items", "UserToken")
    MARKER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    USERTOKEN_FIELD_NUMBER: _ClassVar[int]
    Marker: EMarker
    Items: TItems
    UserToken: str
    def __init__(self, Marker: _Optional[_Union[EMarker, str]] = ..., Items: _Optional[_Union[TItems, _Mapping]] = ..., UserToken: _Optional[str] = ...) -> None: ...

class TResetMarkerResponse(_message.Message):
    __slots__ = ("Status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ...) -> None: ...

class TConditionalPermissionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TConditionalPermissionResponse(_message.Message):
    __slots__ = ("Status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ...) -> None: ...

class TWalleCreateTaskRequest(_message.Message):
    __slots__ = ("TaskId", "Type", "Issuer", "Action", "Hosts", "DryRun", "Devices")
    TASKID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    DRYRUN_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    TaskId: str
    Type: str
    Issuer: str
    Action: str
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    DryRun: bool
    Devices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, TaskId: _Optional[str] = ..., Type: _Optional[str] = ..., Issuer: _Optional[str] = ..., Action: _Optional[str] = ..., Hosts: _Optional[_Iterable[str]] = ..., DryRun: _Optional[bool] = ..., Devices: _Optional[_Iterable[str]] = ...) -> None: ...

class TWalleCreateTaskResponse(_message.Message):
    __slots__ = ("Status", "TaskId", "Hosts", "Devices")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TASKID_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    TaskId: str
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    Devices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., TaskId: _Optional[str] = ..., Hosts: _Optional[_Iterable[str]] = ..., Devices: _Optional[_Iterable[str]] = ...) -> None: ...

class TWalleTaskInfo(_message.Message):
    __slots__ = ("TaskId", "Hosts", "Status", "Devices")
    TASKID_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    TaskId: str
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    Status: str
    Devices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, TaskId: _Optional[str] = ..., Hosts: _Optional[_Iterable[str]] = ..., Status: _Optional[str] = ..., Devices: _Optional[_Iterable[str]] = ...) -> None: ...

class TWalleListTasksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TWalleListTasksResponse(_message.Message):
    __slots__ = ("Status", "Tasks")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Tasks: _containers.RepeatedCompositeFieldContainer[TWalleTaskInfo]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Tasks: _Optional[_Iterable[_Union[TWalleTaskInfo, _Mapping]]] = ...) -> None: ...

class TWalleCheckTaskRequest(_message.Message):
    __slots__ = ("TaskId",)
    TASKID_FIELD_NUMBER: _ClassVar[int]
    TaskId: str
    def __init__(self, TaskId: _Optional[str] = ...) -> None: ...

class TWalleCheckTaskResponse(_message.Message):
    __slots__ = ("Status", "Task")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Task: TWalleTaskInfo
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Task: _Optional[_Union[TWalleTaskInfo, _Mapping]] = ...) -> None: ...

class TWalleRemoveTaskRequest(_message.Message):
    __slots__ = ("TaskId",)
    TASKID_FIELD_NUMBER: _ClassVar[int]
    TaskId: str
    def __init__(self, TaskId: _Optional[str] = ...) -> None: ...

class TWalleRemoveTaskResponse(_message.Message):
    __slots__ = ("Status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ...) -> None: ...

class TPlanRequest(_message.Message):
    __slots__ = ("User", "Hosts", "AvailabilityMode", "TenantPolicy", "Duration")
    USER_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    AVAILABILITYMODE_FIELD_NUMBER: _ClassVar[int]
    TENANTPOLICY_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    User: str
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    AvailabilityMode: EAvailabilityMode
    TenantPolicy: ETenantPolicy
    Duration: int
    def __init__(self, User: _Optional[str] = ..., Hosts: _Optional[_Iterable[str]] = ..., AvailabilityMode: _Optional[_Union[EAvailabilityMode, str]] = ..., TenantPolicy: _Optional[_Union[ETenantPolicy, str]] = ..., Duration: _Optional[int] = ...) -> None: ...

class TPlanResponse(_message.Message):
    __slots__ = ("Status", "Rounds", "LowerBound", "LowerBoundReason", "EstimatedEnd", "Blocked")
    class TRound(_message.Message):
        __slots__ = ("Hosts", "Start", "End")
        HOSTS_FIELD_NUMBER: _ClassVar[int]
        START_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        Hosts: _containers.RepeatedScalarFieldContainer[str]
        Start: int
        End: int
        def __init__(self, Hosts: _Optional[_Iterable[str]] = ..., Start: _Optional[int] = ..., End: _Optional[int] = ...) -> None: ...
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    LOWERBOUND_FIELD_NUMBER: _ClassVar[int]
    LOWERBOUNDREASON_FIELD_NUMBER: _ClassVar[int]
    ESTIMATEDEND_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Rounds: _containers.RepeatedCompositeFieldContainer[TPlanResponse.TRound]
    LowerBound: int
    LowerBoundReason: str
    EstimatedEnd: int
    Blocked: _containers.RepeatedCompositeFieldContainer[TAction]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Rounds: _Optional[_Iterable[_Union[TPlanResponse.TRound, _Mapping]]] = ..., LowerBound: _Optional[int] = ..., LowerBoundReason: _Optional[str] = ..., EstimatedEnd: _Optional[int] = ..., Blocked: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ...) -> None: ...

class TOkToStopRequest(_message.Message):
    __slots__ = ("User", "Hosts", "AvailabilityMode", "TenantPolicy", "Duration")
    USER_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    AVAILABILITYMODE_FIELD_NUMBER: _ClassVar[int]
    TENANTPOLICY_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    User: str
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    AvailabilityMode: EAvailabilityMode
    TenantPolicy: ETenantPolicy
    Duration: int
    def __init__(self, User: _Optional[str] = ..., Hosts: _Optional[_Iterable[str]] = ..., AvailabilityMode: _Optional[_Union[EAvailabilityMode, str]] = ..., TenantPolicy: _Optional[_Union[ETenantPolicy, str]] = ..., Duration: _Optional[int] = ...) -> None: ...

class TOkToStopResponse(_message.Message):
    __slots__ = ("Status", "Hosts", "UpperBound", "Refused")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    UPPERBOUND_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    Hosts: _containers.RepeatedScalarFieldContainer[str]
    UpperBound: int
    Refused: _containers.RepeatedCompositeFieldContainer[TAction]
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ..., Hosts: _Optional[_Iterable[str]] = ..., UpperBound: _Optional[int] = ..., Refused: _Optional[_Iterable[_Union[TAction, _Mapping]]] = ...) -> None: ...

class TAcceptTimeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TAcceptTimeResponse(_message.Message):
    __slots__ = ("Status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    Status: TStatus
    def __init__(self, Status: _Optional[_Union[TStatus, _Mapping]] = ...) -> None: ...

class TWatchRequest(_message.Message):
    __slots__ = ("User", "RequestId")
    USER_FIELD_NUMBER: _ClassVar[int]
    REQUESTID_FIELD_NUMBER: _ClassVar[int]
    User: str
    RequestId: str
    def __init__(self, User: _Optional[str] = ..., RequestId: _Optional[str] = ...) -> None: ...

class TChange(_message.Message):
    __slots__ = ("Kind", "Verb", "Id", "Owner", "Answer")
    class EKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN_KIND: _ClassVar[TChange.EKind]
        REQUEST: _ClassVar[TChange.EKind]
        PERMISSION: _ClassVar[TChange.EKind]
        NOTIFICATION: _ClassVar[TChange.EKind]
        TASK: _ClassVar[TChange.EKind]
        MARKER: _ClassVar[TChange.EKind]
        CONFIG: _ClassVar[TChange.EKind]
    UNKNOWN_KIND: TChange.EKind
    REQUEST: TChange.EKind
    PERMISSION: TChange.EKind
    NOTIFICATION: TChange.EKind
    TASK: TChange.EKind
    MARKER: TChange.EKind
    CONFIG: TChange.EKind
    class EVerb(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN_VERB: _ClassVar[TChange.EVerb]
        ADDED: _ClassVar[TChange.EVerb]
        CHANGED: _ClassVar[TChange.EVerb]
        ANSWER: _ClassVar[TChange.EVerb]
        ENDED: _ClassVar[TChange.EVerb]
    UNKNOWN_VERB: TChange.EVerb
    ADDED: TChange.EVerb
    CHANGED: TChange.EVerb
    ANSWER: TChange.EVerb
    ENDED: TChange.EVerb
    KIND_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    Kind: TChange.EKind
    Verb: TChange.EVerb
    Id: str
    Owner: str
    Answer: TPermissionResponse
    def __init__(self, Kind: _Optional[_Union[TChange.EKind, str]] = ..., Verb: _Optional[_Union[TChange.EVerb, str]] = ..., Id: _Optional[str] = ..., Owner: _Optional[str] = ..., Answer: _Optional[_Union[TPermissionResponse, _Mapping]] = ...) -> None: ...
