"""The stage: virtual time, nodes, the network between them, and power."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.lab.kernel.kernel import Kernel


class World:
    """All nodes of one simulated cluster. Same seed and same calls, same history."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0

    def next_event_at(self) -> float | None:
        """When something happens by itself next; None if nothing is pending."""
        raise NotImplementedError

    def advance(self, to: float) -> None:
        """Let everything happen that is due up to and including ``to``."""
        raise NotImplementedError

    def add_node(self, name: str, addresses: Iterable[str]) -> Kernel:
        """A node that has power, with the addresses (without port) it answers on."""
        raise NotImplementedError

    def node(self, name: str) -> Kernel:
        """The kernel of a node."""
        raise NotImplementedError

    def set_cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Which pairs of nodes cannot reach each other from now on; all other links work, both ways."""
        raise NotImplementedError

    def set_link(self, source: str, destination: str, up: bool) -> None:
        """Cut or mend one direction."""
        raise NotImplementedError

    def power_off(self, name: str) -> None:
        """The node is gone at once: kernel state lost, devices keep what was written."""
        raise NotImplementedError

    def power_on(self, name: str) -> None:
        """The node is back with nothing configured."""
        raise NotImplementedError

    def expect_loss(self, observer: str, peer: str, at: float) -> None:
        """Timing hint for a replay: the observer notices at this time, not at one of our choice, that the peer is gone.

        Holds for the next loss of that peer at or after the present time. Hints decide when, never what.
        """
        raise NotImplementedError

    def expect_reconnect(self, first: str, second: str, at: float) -> None:
        """Timing hint for a replay: the two find each other again at this time, if both try and the link works."""
        raise NotImplementedError

    def hang_link(self, observer: str, peer: str, until: float) -> None:
        """Timing hint for a replay: after losing the peer the observer's receiver is not done cleaning up before then.

        Cleaning up (NetworkFailure to Unconnected) is a state change that can be refused, and is then tried again and
        again: a link that "hangs in NetworkFailure" in a recording. Whether it is refused depends on what the observer
        learns in these milliseconds.
        """
        raise NotImplementedError

    def log(self, name: str) -> list[tuple[float, str]]:
        """A node's kernel log: (time, line) about quorum, tie-breaker and outdating."""
        raise NotImplementedError
