"""An answer, taken from bytes that come in any pieces."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.engine.kubernetes.messages import HEAD_LIMIT, AnswerReader, Malformed

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def taken(data: bytes, *cuts: int, tunnel: bool = False) -> tuple[AnswerReader, bytes]:
    """The reader after all of it, and the content that it gave."""
    reader = AnswerReader(tunnel=tunnel)
    content = [reader.feed(data[begin:end]) for begin, end in pairwise((0, *sorted(cuts), len(data)))]
    return reader, b"".join(content)


@pytest.mark.parametrize(
    ("data", "status", "content"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.1 200\r\ncontent-length:5 \r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 200, b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, b""),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 200, b"hello"),
        (CHUNKED + b"0\r\n\r\n", 200, b""),
        (CHUNKED + b"2;why=not\r\nhe\r\n003\r\nllo\r\n0\r\nExpires: never\r\nX: y\r\n\r\n", 200, b"hello"),
        (CHUNKED + b"A\r\n0123456789\r\n2\r\n\r\n\r\n0\r\n\r\n", 200, b"0123456789\r\n"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CHUNKED + b"0\r\n\r\n",
            200,
            b"",
        ),
        (
            b"HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\nHTTP/1.1 104 New\r\n\r\nHTTP/1.1 204 None\r\n\r\n",
            204,
            b"",
        ),
        (b"HTTP/1.1 200 OK\r\nX-Empty:\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi"),
    ],
)
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_the_pieces_in_which_an_answer_comes_make_no_difference(
    data: bytes, status: int, content: bytes, cuts: list[int]
) -> None:
    reader, found = taken(data, *(min(cut, len(data)) for cut in cuts))
    assert reader.head is not None
    assert (reader.head.status, found, reader.over, reader.excess) == (status, content, True, False)


@given(content=st.binary(max_size=300), sizes=st.lists(st.integers(1, 40)), cuts=st.lists(st.integers(0, 900)))
def test_content_survives_any_chunks(content: bytes, sizes: list[int], cuts: list[int]) -> None:
    data, at = CHUNKED, 0
    for size in [*sizes, len(content)]:
        if piece := content[at : at + size]:
            data += b"%x\r\n%s\r\n" % (len(piece), piece)
            at += size
    data += b"0\r\n\r\n"
    reader, found = taken(data, *(min(cut, len(data)) for cut in cuts))
    assert (found, reader.over) == (content, True)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
        CHUNKED + b"5\r\nhello",
        CHUNKED + b"5\r\nhello\r\n0\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\nExpires: never\r\n",
    ],
)
def test_an_answer_that_was_cut_off_is_not_over(data: bytes) -> None:
    reader, _ = taken(data)
    assert not reader.over
    assert not reader.ends_with_connection


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    reader, content = taken(b"HTTP/1.0 200 OK\r\n\r\nhello", 20)
    assert (content, reader.over, reader.ends_with_connection) == (b"hello", False, True)


@pytest.mark.parametrize("header", [b"X: y", b"Connection: close"])
@pytest.mark.parametrize(
    "more", [b"HTTP/1.1 500", b"x", b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"]
)
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_what_comes_after_an_answer_does_not_belong_to_it(header: bytes, more: bytes, cuts: list[int]) -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + header + b"\r\n\r\nhi" + more
    reader, content = taken(data, *(min(cut, len(data)) for cut in cuts))
    assert (content, reader.over, reader.excess) == (b"hi", True, True)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 Connected\r\n\r\n",
        b"HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy\r\n\r\n",
        b"HTTP/1.1 200 Connected\r\nConnection: close\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 Connected\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
@pytest.mark.parametrize("more", [b"", b"\x16\x03", b"1", b"\r\n"])
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_what_follows_the_acceptance_of_a_tunnel_is_not_http(head: bytes, more: bytes, cuts: list[int]) -> None:
    data = head + more
    reader, content = taken(data, *(min(cut, len(data)) for cut in cuts), tunnel=True)
    assert reader.head is not None
    assert (content, reader.over, reader.excess, reader.head.keeps) == (b"", True, bool(more), True)


def test_a_refused_tunnel_is_an_answer_like_any_other() -> None:
    reader, content = taken(b"HTTP/1.1 407 Who\r\nContent-Length: 2\r\n\r\nno", tunnel=True)
    assert (content, reader.over) == (b"no", True)


def test_an_answer_that_is_over_does_not_wait_for_the_garbage_collector() -> None:
    gc.disable()
    try:
        reader, _ = taken(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        gone = weakref.ref(reader)
        del reader
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("first", "header", "keeps"),
    [
        ("HTTP/1.1 200 OK", "X: y", True),
        ("HTTP/1.1 200 OK", "Connection: keep-alive", True),
        ("HTTP/1.1 200 OK", "connection: Close", False),
        ("HTTP/1.1 200 OK", "Connection: x, close", False),
        ("HTTP/1.0 200 OK", "X: y", False),
        ("HTTP/1.0 200 OK", "Connection: keep-alive", True),
    ],
)
def test_a_connection_is_kept_unless_the_server_closes_it(first: str, header: str, keeps: bool) -> None:
    reader, _ = taken(f"{first}\r\n{header}\r\nContent-Length: 0\r\n\r\n".encode())
    assert reader.head is not None
    assert reader.head.keeps is keeps


def test_a_header_is_found_only_where_headers_are() -> None:
    reader, _ = taken(
        b"HTTP/1.1 429 X\r\nX-Note: Retry-After: 9\r\nX-Retry-After: 8\r\nretry-AFTER: 1\t\r\nContent-Length: 0\r\n\r\n"
    )
    assert reader.head is not None
    assert reader.head.retry_after == "1"


def test_a_trailer_is_no_header() -> None:
    reader, _ = taken(CHUNKED + b"0\r\nRetry-After: 5\r\n\r\n")
    assert reader.head is not None
    assert (reader.over, reader.head.retry_after) == (True, None)


def test_what_an_interim_answer_says_does_not_count() -> None:
    reader, _ = taken(b"HTTP/1.1 103 Early\r\nRetry-After: 5\r\nContent-Length: 5\r\n\r\nHTTP/1.1 429 Later\r\n\r\n")
    assert reader.head is not None
    assert (reader.head.retry_after, reader.head.reason, reader.ends_with_connection) == (None, "Later", True)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        # Of two lengths one would be a smuggler's.
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nX: folded\r\n line\r\n\r\n",
        b"HTTP/1.1 042 What\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nx",
        b"HTTP/1.1 104 New\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"0x5\r\n",
        CHUNKED + b"\r\n",
        CHUNKED + b"2\r\nhello\r\n",
        CHUNKED + b"ffffffffffffffffff\r\n",
        b"HTTP/1.1 200 " + b"x" * HEAD_LIMIT,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3000,
        CHUNKED + b"0\r\nTrailer: " + b"x" * HEAD_LIMIT,
        CHUNKED + b"5" + b";" * (HEAD_LIMIT + 1),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        taken(data)
