"""The API as a simulated node reaches it: not at all while it is cut off, and never again from a boot that is over."""

from __future__ import annotations

from quorate.api.meta import Resource
from quorate.engine.passing import PassingStore
from quorate.engine.store import Store
from quorate.errors import StoreUnreachable


class Plug(PassingStore):
    """A store behind a cable. A watch breaks at the first event that cannot arrive; a short cut may pass unnoticed."""

    def __init__(self, store: Store, node: str) -> None:
        super().__init__(store)
        self._node = node
        #: Whether requests arrive.
        self.connected = True
        self._pulled = False

    def pull(self) -> None:
        """Disconnect for good: whoever still holds this store has no business with it any more."""
        self._pulled = True

    def _admit(self, verb: str, cls: type[Resource], name: str = "") -> None:
        if self._pulled or not self.connected:
            raise StoreUnreachable(f"node {self._node} cannot reach the API")
