"""The lab's reader of drbd.conf beside the real drbdadm: the same verdict on the same lines, in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.lab.tools.conf.configuration import ConfigInvalid, Configuration
from tests.support.drbd_utils import drbdadm

RESOURCE = """resource "r" {{
{line}
  on a {{ node-id 0; address ipv4 10.0.0.1:7000; volume 0 {{ device minor 1; disk /dev/vg0/r; meta-disk internal; }} }}
  on b {{ node-id 1; address ipv4 10.0.0.2:7000; volume 0 {{ device minor 1; disk none; }} }}
}}
"""

LINES = [
    "options { quorum 33; }",
    "options { quorum 0; }",
    "options { quorum many; }",
    "options { auto-promote maybe; }",
    "options { auto-promote; }",
    "net { ping-int x; }",
    "net { ping-int 0; }",
    "net { protocol D; }",
    "net { no-such-thing 1; }",
    "disk { c-max-rate 1; }",
    "disk { nope 1; }",
    "nonsense;",
    "options { quorum 2 }",
    "options { quorum 2;",
    "net { timeout 3000; }",
    "net { timeout 100; connect-int 3; }",
    "on c { }",
    "on c { node-id 5; }",
    "on c { node-id 1; address ipv4 10.0.0.3:7000; volume 0 { device minor 1; disk /dev/x; } }",
    "on c { node-id 5; address ipv4 10.0.0.2:7000; volume 0 { device minor 1; disk /dev/x; meta-disk internal; } }",
    "on c { node-id 40; address ipv4 10.0.0.3:7000; volume 0 { device minor 1; disk /dev/x; meta-disk internal;} }",
    "on c { node-id 2; address 10.0.0.3; volume 0 { device minor 1; disk /dev/x;meta-disk internal; } }",
    "on c { node-id 2; frob 1; }",
    "on c { node-id 2; volume 0 { frob 1; } }",
    "connection { host a; }",
    "connection { host a; host b; frob; }",
    "connection { host a; host zzz; }",
    "connection { host a; host b; net { frob 1; } }",
    "connection-mesh { hosts a b; }",
    "connection-mesh { frob; }",
    "volume 0 { device minor 1; }",
    "startup { wfc-timeout 3; }",
    "handlers { fence-peer /x; }",
    "handlers { frob /x; }",
    "options { quorum 2; quorum 3; }",
    "net { shared-secret; }",
    'net { shared-secret "a b"; }',
    "net { sndbuf-size 4k; congestion-fill 10M; rcvbuf-size 1M; }",
    "disk { c-fill-target 1M; c-min-rate 4M; resync-rate 10M; size 10G; bitmap no; }",
    "options { on-no-data-accessible foo; }",
    "net { fencing foo; }",
    "options { cpu-mask zz; }",
    "options { peer-ack-window 1; }",
    "net { max-buffers 8; }",
    "net { ping-timeout 500; }",
    "disk { al-extents 1; }",
    "disk { on-io-error foo; }",
    "net { csums-alg x; use-rle no; tcp-cork no; }",
    "net { transport tcp; }",
    "net { tls yes; }",
    "net { load-balance-paths yes; }",
    "protocol C;",
    "net { connect-int 0; }",
    "net { ko-count 500; after-sb-0pri foo; }",
    "options { twopc-timeout 1; }",
    "net { allow-remote-read maybe; }",
    "options { quorum-minimum-redundancy 99; }",
    "options { max-io-depth 1; }",
    "on c { node-id x; }",
    "on a { node-id 7; address ipv4 10.0.0.9:7000; volume 0 { device minor 3; disk /dev/y; meta-disk internal; } }",
]
#: Where the real one names another file or line than the one at fault, or only warns.
OTHER_WORDS = {
    "on c { }",
    "on c { node-id 5; }",
    "connection { host a; host zzz; }",
    "on c { node-id 5; address ipv4 10.0.0.2:7000; volume 0 { device minor 1; disk /dev/x; meta-disk internal; } }",
}
INVALID = 10


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_judged_as_the_real_drbdadm_judges_it(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.res"
    path.write_text(RESOURCE.format(line=line))
    real = drbdadm().check(path)
    try:
        Configuration.of({str(path): path.read_bytes()}, main="/dev/null", test=str(path))
        ours = (0, "")
    except ConfigInvalid as error:
        ours = (INVALID, str(error))
    assert ours[0] == real.exit_code, real.stderr
    if line not in OTHER_WORDS:
        said = [text for text in real.stderr.splitlines() if text.strip() and "modinfo" not in text]
        assert ours[1] == "\n".join(said)
