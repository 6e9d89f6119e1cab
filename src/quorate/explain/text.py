"""The story for people: plain lines, the most important first."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.explain.story import Loss, ReplicaStory, VolumeStory
from quorate.explain.troubles import Trouble
from quorate.explain.whereabouts import Candidate


def volume_lines(story: VolumeStory) -> Iterator[str]:
    """Everything about a volume."""
    what = ", ".join(filter(None, (story.size, f"class {story.storage_class}" if story.storage_class else "")))
    yield f"volume {story.name} ({what}): {story.phase or 'new'}"
    if story.message:
        yield f"  {story.message}"
    yield f"  promises {story.promise}"
    yield f"  now: {story.resilience}"
    yield f"  in use on {', '.join(story.published_on) or 'no node'}"
    yield from _troubles(story.troubles, "  ")
    yield ""
    yield "what it waits for"
    yield from _waits(story)
    for replica in story.replicas:
        yield ""
        yield from replica_lines(replica)
    if story.losses:
        yield ""
        yield "if a node went down now"
        yield from _losses(story.losses)


def replica_lines(story: ReplicaStory) -> Iterator[str]:
    """Everything about a replica."""
    place = f"on {story.node}" if story.node else "nowhere yet"
    place += f" in {story.zone}" if story.zone else ""
    place += f", disk {story.disk}" if story.disk else ""
    yield f"replica {story.name} ({story.type}) {place}: {story.phase or 'new'}"
    said = f" (said by {', '.join(story.said_by)})" if story.said_by and story.said_by != (story.name,) else ""
    yield f"  {story.state}{said}"
    yield from _troubles(story.troubles, "  ")
    if story.candidates:
        yield "  why here:" if story.node else "  why nowhere:"
        yield from _candidates(story.candidates)


def _troubles(found: tuple[Trouble, ...], indent: str) -> Iterator[str]:
    """Conditions that say the same are named together."""
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for trouble in found:
        said = (trouble.status, trouble.reason, trouble.message, trouble.remedy)
        alike.setdefault(said, []).append(trouble.condition)
    for (status, reason, message, remedy), conditions in alike.items():
        yield f"{indent}{', '.join(conditions)} {status}: {reason}: {message}"
        if remedy:
            yield f"{indent}  -> {remedy}"


def _waits(story: VolumeStory) -> Iterator[str]:
    if not story.waits:
        yield "  nothing"
    for wait in story.waits:
        said = ": ".join(filter(None, (wait.reason, wait.message)))
        yield f"  {wait.what}: {said}" if said else f"  {wait.what}"
        if wait.blockers:
            yield f"    blocked by {', '.join(wait.blockers)}"


def _candidates(found: tuple[Candidate, ...]) -> Iterator[str]:
    rows = [(each.node, each.zone, each.disk, each.message) for each in found]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width]
        yield "    " + "  ".join([*cells, row[3]]).rstrip()


def _losses(found: tuple[Loss, ...]) -> Iterator[str]:
    width = max(len(f"{loss.node} ({loss.replica})") for loss in found)
    for loss in found:
        verdict = "goes on" if loss.survives else "STOPS"
        yield f"  {f'{loss.node} ({loss.replica})'.ljust(width)}  {verdict}: {loss.message.removeprefix('goes on ')}"
