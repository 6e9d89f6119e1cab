"""Only what these tests share."""

from tests.support.quiet import quiet

__all__ = ["quiet"]
