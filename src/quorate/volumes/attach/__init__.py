"""Attach: who may use a volume where, in which order, and what must be so first (02, Attach; 000, ``rv-publish``).

    queue           ``rv.status.attachRequests``: fed by attachments and ``publishOn``, first come first served
    turns           whose turn it is: one node, or two where the layout lets two
    two_primaries   when a second primary is safe
    yielding        what becomes of the younger when their link is lost
    comparison      copies that may differ are compared, or a part nobody has used is overwritten
    permissions     where the volume could not be written to without somebody who may go down
    guards          when a member may be promoted, and what a demotion waits for
    changes         what the steps of Attach, Detach, EnableMultiattach and DisableMultiattach do to the datamesh
    proposals       which of these transitions could begin
    verdicts        PublishSucceeded and DualPrimaryLinkLost

All of it depends on the picture of the volume alone; ``quorate.volumes.transitions`` makes steps of it and walks them.
Where a replica is missing, ``transitions.requests`` asks for one (``rvr-access-count``).
"""

from quorate.volumes.attach.guards import why_not
from quorate.volumes.attach.queue import requests
from quorate.volumes.attach.verdicts import dual_primary_link_lost, publish_succeeded

__all__ = ["dual_primary_link_lost", "publish_succeeded", "requests", "why_not"]
