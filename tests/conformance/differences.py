"""Where the facade answers otherwise than the real server, on purpose, and why.

A row is a scenario and what the request is about. A test fails when a row stops being true. Beyond single answers:
there is no garbage collector (Orphan and Foreground delete like Background), no server-side apply, no protobuf, no
managedFields.
"""

from __future__ import annotations

_NUMBER = "a version that is no number is the client's fault (400); the real server says 500"

_KIND = "an object of another kind is refused under the name of the kind that the path says"

DIFFERENCES: dict[tuple[str, str], str] = {
    ("bodies.what_is_no_object", "a list of objects"): _KIND,
    ("bodies.what_is_no_object", "an unknown kind"): _KIND,
    ("bodies.what_is_no_object", "another kind"): _KIND,
    ("bodies.what_is_no_object", "invalid UTF-8"): "what is no text is refused; the real server replaces the bytes",
    ("changes.merge_patch", "of another kind"): _KIND,
    ("core.events", "of an object in another namespace"): "Kubernetes' own kinds have their schema here, no more",
    ("metadata.owner_rules", "the same twice"): "kept once, as there, but without a warning",
    ("reading.get", "as protobuf"): "refused with a Status in JSON; the real server refuses in protobuf",
    ("reading.get_with_a_version", "no number"): _NUMBER,
    ("replacing.replace", "another kind"): _KIND,
    ("watching.versions", "no number"): _NUMBER,
    ("watching.versions", "less than nothing"): _NUMBER,
}
