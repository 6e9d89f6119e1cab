"""A backing device that fails: DRBD lets it go at the first request that the device answers with an error.

That is ``on-io-error detach``, the only setting that the model knows. Until then nobody notices: an idle replica on a
dead drive is UpToDate.
"""

from __future__ import annotations

from functools import partial

from quorate.lab.kernel.change import Change
from quorate.lab.kernel.resource import Device
from quorate.lab.kernel.states import Disk


def answers(device: Device) -> bool:
    """Whether the backing device does what it is asked; one that does not is let go, as soon as the request is over."""
    if device.backing is None:
        return False
    if device.backing.device.failed:
        device.resource.world.soon(partial(_let_go, device))
        return False
    return True


def _let_go(device: Device) -> None:
    if device.backing is None or device.resource.gone or device.now.disk is Disk.FAILED:
        return
    change = Change(device.resource, "io-error", hard=True)
    device.new.disk = Disk.FAILED
    change.commit()
    world = device.resource.world
    if world.is_news_faster(device.resource):
        world.later(0.0, partial(go_diskless, device, "failed"))
    else:
        go_diskless(device, "failed")


def go_diskless(device: Device, tag: str) -> None:
    """The last step of letting a backing device go, which peers are told of on its own."""
    if device.backing is None or device.resource.gone:
        return
    change = Change(device.resource, tag, hard=True)
    device.new.disk = Disk.DISKLESS
    change.prepare()
    device.backing.device.holder = None
    device.backing = None
    change.apply()
