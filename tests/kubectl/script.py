"""What a person does with kubectl, and what must appear.

The same script runs against the facade and against a real API server: where ``real`` is not given, both must print
the same.
"""

from __future__ import annotations

from tests.kubectl import changing, reading

SCENES = (
    reading.SERVER,
    reading.EXPLAIN,
    reading.GET,
    reading.NAMESPACES,
    reading.WATCH,
    reading.DESCRIBE,
    changing.EDIT,
    changing.APPLY,
    changing.PATCH,
    changing.VALIDATION,
    changing.WAIT,
    changing.DELETE,
    changing.NODES,
)
