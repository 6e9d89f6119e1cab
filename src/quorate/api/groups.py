"""The API groups, with the one version of each that is served."""

from __future__ import annotations

from typing import NamedTuple


class ApiGroup(NamedTuple):
    """A group and its version."""

    name: str
    version: str


STORAGE = ApiGroup("storage.deckhouse.io", "v1alpha1")
LONGHORN = ApiGroup("longhorn.io", "v1beta2")
BAREMETAL = ApiGroup("csi-baremetal.dell.com", "v1")
MAINTENANCE = ApiGroup("maintenance.quorate.io", "v1alpha1")
QUORATE = ApiGroup("quorate.io", "v1alpha1")
CORE = ApiGroup("", "v1")
RBAC = ApiGroup("rbac.authorization.k8s.io", "v1")
COORDINATION = ApiGroup("coordination.k8s.io", "v1")
