"""Conditions of a PermissionRequest, of a Notification, and of the two configurations."""

from __future__ import annotations

from quorate.api.conditions.declaration import ConditionType, false, true


class Granted(ConditionType):
    """Every action of a PermissionRequest has its permission. The reason is the broker's code."""

    ALLOW = true("Allow", "Everything is allowed.")
    ALLOW_PARTIAL = false("AllowPartial", "Some of the actions are allowed.", "Do those; the rest follows.")
    DISALLOW_TEMP = false(
        "DisallowTemp", "Not now.", "Wait until status.deadline; status.refused says what stands in the way."
    )
    DISALLOW = false("Disallow", "Not as long as the cluster is as it is.", "status.refused says why.")
    WRONG_REQUEST = false("WrongRequest", "The request makes no sense.", "The message says why.")
    ERROR = false("Error", "The broker cannot do that.", "The message says why.")
    ERROR_TEMP = false("ErrorTemp", "The broker cannot answer now.", "Wait until status.deadline.")
    UNAUTHORIZED = false("Unauthorized", "spec.user is not who made the request.", "Make it as that user.")
    NO_SUCH_HOST = false("NoSuchHost", "There is no such host.", "See kubectl get nodes.")
    NO_SUCH_DEVICE = false("NoSuchDevice", "There is no such device.", "See kubectl get drives.")
    NO_SUCH_SERVICE = false("NoSuchService", "The host has no such service.", "It is storage or dynnode.")


class Accepted(ConditionType):
    """The broker has taken note of a Notification."""

    ACCEPTED = true("Accepted", "The work is taken into account.")
    OVER = false("Over", "The work is over.")
    WRONG_REQUEST = false("WrongRequest", "The notification makes no sense.", "The message says why.")
    NO_SUCH_HOST = false("NoSuchHost", "There is no such host.", "See kubectl get nodes.")
    NO_SUCH_DEVICE = false("NoSuchDevice", "There is no such device.", "See kubectl get drives.")


class Applied(ConditionType):
    """The leader uses this configuration (ClusterConfig, BrokerConfig)."""

    APPLIED = true("Applied", "The configuration is in use.")
    INVALID = false("Invalid", "The configuration cannot be used; the one before stays.", "The message says why.")
