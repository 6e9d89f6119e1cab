"""Where too many drives would be marked at once, none is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorate.api.maintenance.broker_config import MonitorConfig
from quorate.api.struct import replace
from quorate.maintenance.monitor.guards import Location, Standing, held_back
from quorate.maintenance.nouns import DriveId

CONFIG = MonitorConfig(data_center_ratio=50, room_ratio=70, rack_ratio=90)


def place(node: int) -> Location:
    """Two data centres of two rooms of two racks of two nodes each."""
    return Location(node, f"dc{node // 8}", f"room{node // 4}", f"rack{node // 2}")


#: Two drives each.
DRIVES = {DriveId(node, drive): place(node) for node in range(16) for drive in (1, 2)}
EVERYWHERE = tuple(DRIVES.values())


def held(wanted: list[DriveId], marked: list[DriveId] | None = None, config: MonitorConfig = CONFIG) -> set[DriveId]:
    standing = Standing(EVERYWHERE, [(drive, DRIVES[drive]) for drive in marked or ()])
    return set(held_back([(drive, DRIVES[drive]) for drive in wanted], standing, config))


def of_nodes(*nodes: int) -> list[DriveId]:
    return [drive for drive in DRIVES if drive.node in nodes]


def test_one_drive_may_always_be_marked_where_there_are_others() -> None:
    assert all(not held([drive]) for drive in DRIVES)


def test_a_dark_data_centre_marks_nothing_and_the_other_is_not_held_back_for_it() -> None:
    assert held([*of_nodes(*range(8)), DriveId(9, 1)]) == set(of_nodes(*range(8)))


def test_a_dark_room_marks_nothing() -> None:
    assert held(of_nodes(0, 1, 2, 3)) == set(of_nodes(0, 1, 2, 3))
    assert not held([*of_nodes(0), DriveId(1, 1), DriveId(2, 1), DriveId(3, 1)])


def test_a_dark_rack_marks_nothing_but_one_node_of_it_may() -> None:
    assert held(of_nodes(0, 1)) == set(of_nodes(0, 1))
    assert not held(of_nodes(0))


def test_two_waves_in_a_row_are_no_way_round() -> None:
    first = of_nodes(0, 2, 4, 6)
    assert not held(first)
    assert held([DriveId(1, 1)], marked=first) == {DriveId(1, 1)}


def test_a_shelf_of_drives_is_held_back_by_its_nodes_own_limit() -> None:
    limited = replace(CONFIG, faulty_disks_per_node=1)
    assert held([DriveId(0, 1)], config=limited) == set()
    assert held(of_nodes(0), config=limited) == set(of_nodes(0))
    assert held([DriveId(0, 2)], marked=[DriveId(0, 1)], config=limited) == {DriveId(0, 2)}


def test_a_place_without_a_name_has_no_guard() -> None:
    nowhere = Location(1)
    wanted = [(DriveId(1, each), nowhere) for each in range(3)]
    assert held_back(wanted, Standing([nowhere] * 3), CONFIG) == {}


@given(st.sets(st.sampled_from(sorted(DRIVES))), st.sets(st.sampled_from(sorted(DRIVES))))
def test_what_passes_never_exceeds_a_share_of_data_centre_or_room(wanted: set[DriveId], marked: set[DriveId]) -> None:
    new = wanted - marked
    passed = new - held(sorted(new), sorted(marked))
    for kind, percent in (("data_center", 50), ("room", 70)):
        for name in {getattr(at, kind) for at in EVERYWHERE}:
            inside = {drive for drive, at in DRIVES.items() if getattr(at, kind) == name}
            if passed & inside:
                assert len((passed | marked) & inside) * 100 <= len(inside) * percent


def test_the_reason_tells_place_numbers_and_limit() -> None:
    reasons = held_back([(drive, DRIVES[drive]) for drive in of_nodes(*range(8))], Standing(EVERYWHERE), CONFIG)
    assert reasons[DriveId(0, 1)] == "16 of 16 drives of data centre dc0 would be marked, at most 50 % may be"
