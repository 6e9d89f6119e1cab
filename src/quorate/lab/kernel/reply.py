"""What a kernel call answers: the numbers are drbd's own, so that drbdsetup's exit codes follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    """Positive: the request was wrong (ERR_…). Negative: the state change was refused (SS_…)."""

    OK = 0
    CANNOT_OPEN_DISK = 104
    DISK_TOO_SMALL = 111
    METADATA_INVALID = 119
    UNKNOWN_AUTH_ALGORITHM = 120
    DISK_CONFIGURED = 124
    NET_CONFIGURED = 125
    MINOR_INVALID = 127
    RESIZE_DURING_RESYNC = 130
    PAUSE_IS_SET = 134
    PAUSE_IS_CLEAR = 135
    NO_DISK = 138
    UNKNOWN_VERIFY_ALGORITHM = 146
    DATA_NOT_CURRENT = 150
    CONNECTED = 151
    UNKNOWN_RESOURCE = 158
    RESOURCE_IN_USE = 159
    MINOR_CONFIGURED = 160
    MINOR_OR_VOLUME_EXISTS = 161
    INVALID_REQUEST = 162
    TWO_PRIMARIES_IN_USE = 164
    METADATA_UNCLEAN = 165
    INVALID_PEER_NODE_ID = 171
    ALREADY_EXISTS = 174

    TWO_PRIMARIES = -1
    NO_UP_TO_DATE_DATA = -2
    NO_LOCAL_DISK = -4
    NO_REMOTE_DISK = -5
    CONNECTED_OUTDATES = -6
    RESYNC_RUNNING = -8
    REFUSED_BY_PEER = -10
    IS_DISKLESS = -11
    DEVICE_IN_USE = -12
    NO_VERIFY_ALGORITHM = -14
    NEED_CONNECTION = -15
    LOWER_THAN_OUTDATED = -16
    IN_TRANSIENT_STATE = -18
    WEAKLY_CONNECTED = -24
    NO_QUORUM = -25


MESSAGES = {
    Code.CANNOT_OPEN_DISK: "Can not open backing device.",
    Code.DISK_TOO_SMALL: "Low.dev. smaller than requested DRBD-dev. size.",
    Code.METADATA_INVALID: "No valid meta-data signature found.\n\n"
    "\t==> Use 'drbdadm create-md res' to initialize meta-data area. <==\n",
    Code.UNKNOWN_AUTH_ALGORITHM: "The 'cram-hmac-alg' you specified is not known in the kernel. "
    "(Maybe you need to modprobe it, or modprobe hmac?)",
    Code.DISK_CONFIGURED: "Device is attached to a disk (use detach first)",
    Code.NET_CONFIGURED: "Device has a net-config (use disconnect first)",
    Code.MINOR_INVALID: "Device minor not allocated",
    Code.RESIZE_DURING_RESYNC: "Resize not allowed during resync.",
    Code.PAUSE_IS_SET: "Sync-pause flag is already set",
    Code.PAUSE_IS_CLEAR: "Sync-pause flag is already cleared",
    Code.NO_DISK: "Device does not have a disk-config",
    Code.UNKNOWN_VERIFY_ALGORITHM: "Can not use that 'verify-alg': it is not known in the kernel.",
    Code.DATA_NOT_CURRENT: "Can only attach to the data we lost last (see kernel log).",
    Code.CONNECTED: "Can not do this while connected.",
    Code.UNKNOWN_RESOURCE: "Unknown resource",
    Code.RESOURCE_IN_USE: "Resource still in use (delete all minors first)",
    Code.MINOR_CONFIGURED: "Minor still configured (down it first)",
    Code.MINOR_OR_VOLUME_EXISTS: "Minor or volume exists already (delete it first)",
    Code.INVALID_REQUEST: "Invalid configuration request",
    Code.TWO_PRIMARIES_IN_USE: "Can not clear allow_two_primaries as long as\nthere a primaries on both sides",
    Code.METADATA_UNCLEAN: "Unclean meta-data found.\nYou need to 'drbdadm apply-al res'\n",
    Code.INVALID_PEER_NODE_ID: "Invalid peer-node-id",
    Code.ALREADY_EXISTS: "Already exists",
    Code.TWO_PRIMARIES: "Multiple primaries not allowed by config",
    Code.NO_UP_TO_DATE_DATA: "Need access to UpToDate data",
    Code.NO_LOCAL_DISK: "Can not resync without local disk",
    Code.NO_REMOTE_DISK: "Can not resync without remote disk",
    Code.CONNECTED_OUTDATES: "Refusing to be Outdated while Connected",
    Code.RESYNC_RUNNING: "Can not start OV/resync since it is already active",
    Code.REFUSED_BY_PEER: "State change was refused by peer node",
    Code.IS_DISKLESS: "Device is diskless, the requested operation requires a disk",
    Code.DEVICE_IN_USE: "Device is held open by someone",
    Code.NO_VERIFY_ALGORITHM: "Need a verify algorithm to start online verify",
    Code.NEED_CONNECTION: "Need a connection to start verify or resync",
    Code.LOWER_THAN_OUTDATED: "Disk state is lower than outdated",
    Code.IN_TRANSIENT_STATE: "In transient state, retry after next state change",
    Code.WEAKLY_CONNECTED: "Nodes are not directly connected",
    Code.NO_QUORUM: "No quorum",
}
"""The one line that drbdsetup prints for each number."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call.

    ``text`` holds the kernel's detail lines, which drbdsetup prints below "additional info from kernel:".
    """

    code: int = 0
    text: str = ""

    @property
    def ok(self) -> bool:
        """Whether the call did what was asked."""
        return self.code == 0

    @property
    def message(self) -> str:
        """The number's own line, without the number."""
        return MESSAGES.get(Code(self.code), "") if self.code else ""


DONE = Reply()
