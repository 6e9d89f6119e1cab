"""One replica under judgement: what the conditions are composed from."""

from __future__ import annotations

import msgspec

from quorate.api.conditions import Verdict
from quorate.api.storage.drbd import Device, DrbdActual, DrbdConfig, DrbdErrors, DrbdStatus, Peer, ReplicaType
from quorate.drbd.resource_file import linked_peers
from quorate.volumes.replica import membership
from quorate.volumes.replica.snapshot import Snapshot
from quorate.volumes.view import ReplicaView, VolumeView


class Subject(msgspec.Struct, frozen=True, gc=False):
    """A replica, with the config that this pass gives it: what is judged is what will be there once it is written."""

    snapshot: Snapshot
    replica: ReplicaView
    config: DrbdConfig
    #: The volume.
    view: VolumeView
    #: Whether it has an agent whose word does not count now.
    silent: bool
    #: Whether it takes part.
    is_member: bool
    #: Whether it has, or is about to have, a copy: as a member in its revision, before that as intended.
    diskful: bool
    #: What its kernel shows, by a living agent's word.
    report: DrbdStatus | None
    #: The one volume of its resource.
    device: Device | None
    #: Those that it is to have a link to.
    peers: tuple[Peer, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, replica: ReplicaView) -> Subject:
        """The replica as this pass leaves it."""
        view, member, report = snapshot.view, replica.member, replica.report
        config = membership.config(view, replica)
        return cls(
            snapshot=snapshot,
            replica=replica,
            config=config,
            view=view,
            silent=replica.node is not None and not replica.fresh,
            is_member=member is not None,
            diskful=(member.type if member is not None else replica.type) is ReplicaType.DISKFUL,
            report=report,
            device=report.devices[0] if report is not None and report.devices else None,
            peers=linked_peers(config),
        )

    @property
    def blind(self) -> str:
        """Why an agent that lives cannot look at its kernel; empty: it can, or it does not live."""
        node, error = self.replica.node, self.errors.last_status_error
        if node is None or not node.fresh or error is None:
            return ""
        return self.on_node(f"the agent cannot look at its kernel: {error.output or error.command}")

    @property
    def actual(self) -> DrbdActual:
        """What its agent has realised."""
        return self.replica.replica.status.drbd.actual

    @property
    def errors(self) -> DrbdErrors:
        """What failed last."""
        return self.replica.replica.status.drbd.errors

    def on_node(self, words: str = "") -> str:
        """For messages: which replica, and where."""
        where = f" on {self.replica.node_name}" if self.replica.node_name is not None else ""
        return f"{self.replica.name}{where}{f': {words}' if words else ''}"


Verdicts = dict[str, Verdict]
