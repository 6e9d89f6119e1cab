"""Drives: from a bad sector to a new disk in the slot.

**Purpose.** A drive that cannot be trusted is emptied without anybody losing anything, made safe to pull, and replaced.
The protocol is csi-baremetal's (004): annotations on Drives and on Volumes, which stand for what is on a drive that is
on its way out. Quorate is itself the operator that releases its replicas.

| module       | decides                                                                                          |
|--------------|--------------------------------------------------------------------------------------------------|
| ``health``   | how a drive is: ``asked`` of people and the broker, or measured                                  |
| ``phases``   | the state machine, from the full set of what is on the drive (M15)                               |
| ``objects``  | which Volumes there are; ``others`` says how far copies of images and foreign data are           |
| ``operator`` | how far replicas are (``progress``), in the words of the protocol                                |
| ``turns``    | whose turn it is to be moved, within ``limits``; the move itself is ``quorate.volumes``' business |
| ``removal``  | permission, last look, and the order to the agent to take the device apart; ``closing`` the end  |
| ``report``   | conditions, progress and words; ``events`` what people are told                                  |

**Controllers.** ``controller`` has a pass for each node, ``operator`` one for each volume, ``turns`` one for all.
Nothing here is remembered but in objects: any of them may be killed at any time.
"""

from quorate.drives.controller import DRIVE_CONTROLLER
from quorate.drives.operator import OPERATOR_CONTROLLER
from quorate.drives.turns import TURNS_CONTROLLER

CONTROLLERS = (DRIVE_CONTROLLER, OPERATOR_CONTROLLER, TURNS_CONTROLLER)

__all__ = ["CONTROLLERS"]
