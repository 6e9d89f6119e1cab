"""The volumes that the script makes, and the two steps that every scene has."""

from __future__ import annotations

from tests.kubectl.step import Step

VOLUME = """
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedVolume
metadata:
  name: NAME
  labels: {tier: TIER}
spec:
  replicatedStorageClassName: fast
  size: SIZE
"""


def volume(name: str, size: str = "10Gi", tier: str = "gold") -> str:
    return VOLUME.replace("NAME", name).replace("SIZE", size).replace("TIER", tier)


def in_a_list(manifest: str) -> str:
    """As ``kubectl get -o yaml`` prints several objects."""
    return "apiVersion: v1\nkind: List\nitems:\n-" + manifest.strip().replace("\n", "\n  ").join((" ", "\n"))


def create(name: str, size: str = "10Gi", tier: str = "gold") -> Step:
    return Step(
        "create -f -",
        stdin=volume(name, size, tier),
        prints=f"replicatedvolume.storage.deckhouse.io/{name} created",
    )


def delete(*names: str) -> Step:
    gone = "\n".join(f'replicatedvolume.storage.deckhouse.io "{name}" deleted' for name in names)
    return Step(f"delete rv {' '.join(names)}", prints=gone)
