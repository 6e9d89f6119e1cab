"""Attachments: somebody wants a volume on a node.

**Purpose.** The reconciler of ReplicatedVolumeAttachments. Its key is the volume: one pass sees all that want it. It
reports and holds; who is attached when is decided by the volume's reconciler, which keeps the queue.

    conditions   Attached, ReplicaReady, Ready; why it waits is ``quorate.volumes.attach``'s answer
    controller   all of it as one plan, with one status write for each; finalizers

**Writes.** The attachments' status and their one finalizer.
"""

from __future__ import annotations

from quorate.volumes.attachment.controller import controllers

__all__ = ["controllers"]
