"""The stage: virtual time, nodes, the network between them, and power."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from quorate.errors import QuorateError
from quorate.lab.kernel import links
from quorate.lab.kernel.kernel import Kernel
from quorate.lab.kernel.module import Module
from quorate.lab.kernel.races import Accident, Race, Wrong
from quorate.lab.kernel.resource import Resource
from quorate.lab.kernel.states import Disk, Role

NEWS_FIRST = 1 / 3
"""How often a primary without a disk stood still at once when one of two disks was detached, in the recording."""
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class UnknownNode(QuorateError):
    """The world has no node of that name."""


class World:
    """All nodes of one simulated cluster. Same seed and same calls, same history.

    Nothing happens while no call is made: time moves in ``advance`` only, and a healthy link costs nothing.
    """

    def __init__(self, seed: int = 0, epoch: datetime = _EPOCH) -> None:
        self.now = 0.0
        self.random = random.Random(seed)
        self.epoch = epoch
        """The wall-clock time at ``now`` 0, for texts that name a time."""
        self.nodes: dict[str, Kernel] = {}
        self._by_address: dict[str, Kernel] = {}
        self._cut: set[tuple[str, str]] = set()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._ready: deque[Callable[[], None]] = deque()
        self._settling = False
        self._losses: dict[tuple[str, str, str], list[float]] = {}
        self._reconnects: dict[tuple[str, frozenset[str]], list[float]] = {}
        self._hangs: dict[tuple[str, str, str], float] = {}
        self._counts: dict[tuple[str, str], list[float]] = {}
        self._counts_before: dict[tuple[str, str], float] = {}
        self._awaited: dict[tuple[str, str, str], float] = {}
        self.accidents: deque[Accident] = deque(maxlen=10_000)
        """What went wrong as it does in the real kernel, the latest of it."""
        self.chances: dict[Race, float] = {}
        """How often races that the real kernel seldom loses are lost here, 0 to 1; never, unless set."""
        self.news_is_faster: bool | None = None
        """Whether a disk that goes is known to be gone by all others before it is; None: by chance."""

    # -- time --------------------------------------------------------------------------------------------------------

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Plan an action."""
        self._sequence += 1
        heapq.heappush(self._heap, (max(time, self.now), self._sequence, action))

    def later(self, delay: float, action: Callable[[], None]) -> None:
        """Plan an action some seconds from now."""
        self.at(self.now + delay, action)

    def soon(self, action: Callable[[], None]) -> None:
        """Run an action when the present one is done, at the same time."""
        self._ready.append(action)

    def jitter(self, low: float, high: float) -> float:
        """A delay that the seed decides."""
        return self.random.uniform(low, high)

    def settle(self) -> None:
        """Run what was put off until the present action is done."""
        if self._settling:
            return
        self._settling = True
        try:
            while self._ready:
                self._ready.popleft()()
        finally:
            self._settling = False

    def next_event_at(self) -> float | None:
        """When something happens by itself next; None if nothing is pending."""
        return self._heap[0][0] if self._heap else None

    def advance(self, to: float) -> None:
        """Let everything happen that is due up to and including ``to``."""
        while self._heap and self._heap[0][0] <= to:
            time, _, action = heapq.heappop(self._heap)
            self.now = time
            action()
            self.settle()
        self.now = max(self.now, to)

    def clock_text(self, at: float) -> str:
        """A time as the kernel prints it."""
        return (self.epoch + timedelta(seconds=at)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    # -- nodes and links ---------------------------------------------------------------------------------------------

    def add_node(self, name: str, addresses: Iterable[str]) -> Kernel:
        """A node that has power, with the addresses (without port) it answers on."""
        kernel = self.nodes[name] = Kernel(self, name, tuple(addresses))
        for address in kernel.addresses:
            self._by_address[address] = kernel
        return kernel

    def node(self, name: str) -> Kernel:
        """The kernel of a node."""
        try:
            return self.nodes[name]
        except KeyError:
            raise UnknownNode(f"no node {name!r}; there are {', '.join(sorted(self.nodes)) or 'none'}") from None

    def by_address(self, address: str) -> Kernel | None:
        """The node that answers on an address."""
        return self._by_address.get(address)

    def reachable(self, first: Module, second: Module) -> bool:
        """Whether two nodes can talk: power on both, and the link works in both directions."""
        if not (first.powered and second.powered):
            return False
        if not self._cut:
            return True
        return (first.name, second.name) not in self._cut and (second.name, first.name) not in self._cut

    def set_cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Which pairs of nodes cannot reach each other from now on; all other links work, both ways."""
        cut = {pair for a, b in pairs for pair in ((a, b), (b, a))}
        changed = sorted({tuple(sorted(pair)) for pair in cut ^ self._cut})
        self._cut = cut
        for first, second in changed:
            self._link_changed(first, second)
        self.settle()

    def set_link(self, source: str, destination: str, up: bool) -> None:
        """Cut or mend one direction."""
        if up:
            self._cut.discard((source, destination))
        else:
            self._cut.add((source, destination))
        self._link_changed(source, destination)
        self.settle()

    def _link_changed(self, first: str, second: str) -> None:
        if first in self.nodes and second in self.nodes:
            links.link_changed(self.nodes[first], self.nodes[second])

    def power_off(self, name: str) -> None:
        """The node is gone at once: kernel state lost, devices keep what was written."""
        kernel = self.node(name)
        peers = kernel.lose_power()
        for connection in peers:
            links.peer_vanished(connection)
        self.settle()

    def power_on(self, name: str) -> None:
        """The node is back with nothing configured."""
        self.node(name).powered = True

    def is_news_faster(self, resource: Resource) -> bool:
        """Whether those who lose their quorum by a disk that is being let go have told so before it is gone.

        It decides what becomes of a primary without a disk (``e4_hidden_primary_detach``). If the news comes first, the
        primary refuses to hear that the disk is gone, hangs up and stands still; if it comes last, the primary goes on.
        Where there is none, nothing depends on it.
        """
        followers = (link for link in resource.connected() if link.now.peer_role is Role.PRIMARY)
        if not any(peer.now.disk is Disk.DISKLESS for link in followers for peer in link.peer_devices.values()):
            return False
        return self.random.random() < NEWS_FIRST if self.news_is_faster is None else self.news_is_faster

    def log(self, name: str) -> list[tuple[float, str]]:
        """A node's kernel log: (time, line) about quorum, tie-breaker and outdating. Lost with power."""
        return self.node(name).log_lines

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def note(self, wrong: Wrong, resource: Resource, lacking: int, blocks: tuple[tuple[int, int], ...]) -> None:
        """Keep account of an accident."""
        self.accidents.append(Accident(self.now, wrong, resource.name, resource.kernel.name, lacking, blocks))

    def loses(self, race: Race) -> bool:
        """Whether a race is lost this time."""
        chance = self.chances.get(race, 0.0)
        return chance > 0 and self.random.random() < chance

    # -- timing hints of a replay ------------------------------------------------------------------------------------

    def expect_loss(self, resource: str, observer: str, peer: str, at: float) -> None:
        """Timing hint for a replay: the observer notices at this time, not at one of our choice, that the peer is gone.

        Hints of a pair are used in the order given, each for one loss that happens before it. They decide when, never
        what.
        """
        self._losses.setdefault((resource, observer, peer), []).append(at)

    def expect_reconnect(self, resource: str, first: str, second: str, at: float) -> None:
        """Timing hint for a replay: the two find each other again at this time, if both try and the link works."""
        self._reconnects.setdefault((resource, frozenset((first, second))), []).append(at)

    def hang_link(self, resource: str, observer: str, peer: str, until: float) -> None:
        """Timing hint for a replay: after losing the peer the observer's receiver is not done cleaning up before then.

        Cleaning up (NetworkFailure to Unconnected) is a change that can be refused, and is then tried again and again:
        a link that "hangs in NetworkFailure" in a recording. Whether it is refused depends on what the observer learns
        in these milliseconds, so a short delay is enough.
        """
        self._hangs[resource, observer, peer] = until

    def expect_count(self, resource: str, node: str, at: float) -> None:
        """Timing hint for a replay: after a loss, the node and those it reaches count each other at this time."""
        self._counts.setdefault((resource, node), []).append(at)

    def expect_count_before(self, resource: str, node: str, at: float) -> None:
        """Timing hint for a replay: the node has counted when this time comes, whatever got in its way."""
        self._counts_before[resource, node] = at

    def loss_hint(self, resource: str, observer: str, peer: str) -> float | None:
        """When a loss that happened now is to be noticed, if a hint says so."""
        hint = self._take(self._losses.get((resource, observer, peer)))
        if hint is not None:
            self._awaited[resource, observer, peer] = hint
        return hint

    def loss_is_awaited(self, resource: str, observer: str, peer: str) -> bool:
        """Whether a hint says when the loss of the peer will be noticed: nothing hastens it."""
        hint = self._awaited.get((resource, observer, peer))
        return hint is not None and hint >= self.now

    def count_hint(self, resource: str, node: str) -> float | None:
        """When the members are to be counted, if a hint says so."""
        return self._take(self._counts.get((resource, node)))

    def count_limit(self, resource: str, node: str) -> float:
        """By when the members are to be counted."""
        limit = self._counts_before.get((resource, node), math.inf)
        return limit if limit >= self.now else math.inf

    def reconnect_hint(self, resource: str, first: str, second: str) -> float | None:
        """When two nodes are to find each other, if a hint says so."""
        return self._take(self._reconnects.get((resource, frozenset((first, second)))))

    def _take(self, hints: list[float] | None) -> float | None:
        while hints:
            at = hints.pop(0)
            if at >= self.now:
                return at
        return None

    def hangs_until(self, resource: str, observer: str, peer: str) -> float:
        """Until when a clean-up is delayed."""
        return self._hangs.get((resource, observer, peer), 0.0)
