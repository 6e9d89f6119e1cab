"""What LVM prints is read, whichever version printed it; what it never prints is one kind of error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.agent.lvm.report import UnreadableReport, VolumesReader, read_devices, read_groups
from quorate.agent.lvm.seen import NEW, SeenDevice, SeenGroup, SeenVolumes

#: As LVM 2.03 prints it: spaces before everything, every value a text, one row per segment.
LVS = """
  {
      "report": [
          {
              "lv": [
                  {"vg_name":"vg0", "lv_name":"pvc-1", "lv_uuid":"b0fNHB", "lv_size":"12582912", "lv_attr":"-wi-ao----", "lv_tags":"quorate.llv=1,quorate.new", "pool_lv":"", "data_percent":"", "devices":"/dev/sdb(0)"},
                  {"vg_name":"vg0", "lv_name":"pvc-1", "lv_uuid":"b0fNHB", "lv_size":"12582912", "lv_attr":"-wi-ao----", "lv_tags":"quorate.llv=1,quorate.new", "pool_lv":"", "data_percent":"", "devices":"/dev/sdc1(7)"},
                  {"vg_name":"vg0", "lv_name":"tp", "lv_uuid":"cccccc", "lv_size":"33554432", "lv_attr":"twi-aotz--", "lv_tags":"", "pool_lv":"", "data_percent":"12.87", "devices":"tp_tdata(0)"},
                  {"vg_name":"vg0", "lv_name":"[tp_tdata]", "lv_uuid":"dddddd", "lv_size":"33554432", "lv_attr":"Twi-ao----", "lv_tags":"", "pool_lv":"", "data_percent":"", "devices":"/dev/sdd(1)"},
                  {"vg_name":"vg0", "lv_name":"t1", "lv_uuid":"eeeeee", "lv_size":"99999744", "lv_attr":"Vwi-a-tz--", "lv_tags":"", "pool_lv":"tp", "data_percent":"0.00", "devices":""}
              ]
          }
      ]
      ,
      "log": [
      ]
  }
"""  # noqa: E501


def _volumes() -> SeenVolumes:
    return SeenVolumes(VolumesReader().read(LVS))


def test_the_segments_of_a_volume_are_one_volume() -> None:
    volume = _volumes().get("vg0/pvc-1")
    assert volume is not None
    assert (volume.size, volume.open, volume.active) == (12582912, True, True)
    assert volume.tags == {NEW, "quorate.llv=1"}
    assert _volumes().devices_of(volume) == ("/dev/sdb", "/dev/sdc1")


def test_a_thin_volume_lies_on_the_devices_of_its_pools_hidden_data_volume() -> None:
    seen = _volumes()
    thin, pool = seen.get("vg0/t1"), seen.get("vg0/tp")
    assert thin is not None
    assert pool is not None
    assert seen.devices_of(thin) == ("/dev/sdd",)
    assert (pool.is_pool, pool.zeroing, pool.used_percent) == (True, True, 12)
    assert seen.in_pool("vg0", "tp") == (thin,)


@pytest.mark.parametrize(
    ("flag", "trouble"), [("-", ""), ("p", "missing"), ("F", "failed"), ("D", "out of space"), ("M", "read only")]
)
def test_the_health_of_a_volume_is_in_the_ninth_flag(flag: str, trouble: str) -> None:
    text = json.dumps({"report": [{"lv": [{"vg_name": "v", "lv_name": "n", "lv_attr": f"twi-aotz{flag}-"}]}]})
    (volume,) = VolumesReader().read(text)
    assert trouble in volume.trouble
    assert bool(volume.trouble) == bool(trouble)


def test_numbers_are_read_as_text_or_as_numbers() -> None:
    row: dict[str, Any] = {"vg_name": "vg0", "vg_uuid": "u", "vg_size": 100, "vg_free": "40B", "vg_extent_size": "4"}
    text = json.dumps({"report": [{"vg": [row]}]})
    assert read_groups(text) == (SeenGroup("vg0", "u", 100, 40, 4, 0),)


def test_missing_devices_are_marked() -> None:
    row = {"pv_name": "[unknown]", "vg_name": "vg0", "vg_uuid": "u", "pv_size": "8", "pv_missing": "missing"}
    assert read_devices(json.dumps({"report": [{"pv": [row]}]})) == (SeenDevice("[unknown]", "vg0", "u", 8, True),)


@pytest.mark.parametrize(
    "text", ["", "lvs: command failed", "[]", '{"report": 3}', '{"report": [{"lv": [{"lv_size": "-5"}]}]}']
)
def test_what_is_no_report_is_refused_with_its_beginning(text: str) -> None:
    with pytest.raises(UnreadableReport):
        VolumesReader().read(text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.sampled_from(
    ("vg_name", "lv_name", "lv_size", "lv_attr", "lv_tags", "devices", "data_percent", "vg_size", "pv_name", "pv_size")
)
_ROWS = st.lists(st.dictionaries(_FIELDS, _JSON, max_size=6), max_size=3)


@given(st.text(max_size=200) | _ROWS.map(lambda rows: json.dumps({"report": [{"lv": rows, "vg": rows, "pv": rows}]})))
def test_whatever_is_printed_it_is_read_or_unreadable(text: str) -> None:
    for read in (VolumesReader().read, read_groups, read_devices):
        with suppress(UnreadableReport):
            read(text)


@given(_ROWS)
def test_devices_are_found_however_volumes_point_at_each_other(rows: list[dict[str, Any]]) -> None:
    try:
        volumes = SeenVolumes(VolumesReader().read(json.dumps({"report": [{"lv": rows}]})))
    except UnreadableReport:
        return
    for volume in volumes.volumes:
        assert all(path.startswith("/") for path in volumes.devices_of(volume))
