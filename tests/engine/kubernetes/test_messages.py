"""An answer, taken from bytes that come in any pieces."""

from __future__ import annotations

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
        (CHUNKED + b"2;why=not\r\nhe\r\n003 \r\nllo\r\n0\r\nExpires: never\r\nX: y\r\n\r\n", 200, b"hello"),
        (CHUNKED + b"A\r\n0123456789\r\n2\r\n\r\n\r\n0\r\n\r\n", 200, b"0123456789\r\n"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CHUNKED + b"0\r\n\r\n",
            200,
            b"",
        ),
        # Of two contradicting lengths the one that smugglers do not get to choose, as RFC 9112 has it.
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 200, b"x"),
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


def test_what_comes_after_an_answer_does_not_belong_to_it() -> None:
    reader, content = taken(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 500")
    assert (content, reader.over, reader.excess) == (b"hi", True, True)


def test_after_the_acceptance_of_a_tunnel_comes_no_content() -> None:
    reader, content = taken(b"HTTP/1.1 200 Connected\r\n\r\n", tunnel=True)
    assert (content, reader.over) == (b"", True)
    reader, content = taken(b"HTTP/1.1 407 Who\r\nContent-Length: 2\r\n\r\nno", tunnel=True)
    assert (content, reader.over) == (b"no", True)


@pytest.mark.parametrize(
    ("first", "header", "keeps"),
    [
        ("HTTP/1.1 200 OK", "X: y", True),
        ("HTTP/1.1 200 OK", "Connection: keep-alive", True),
        ("HTTP/1.1 200 OK", "connection: Close", False),
        ("HTTP/1.1 200 OK", "Connection: x, close", False),
        ("HTTP/1.0 200 OK", "X: y", False),
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
    assert reader.head.headers == {"retry-after": "1", "content-length": "0"}


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
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"0x5\r\n",
        CHUNKED + b"\r\n",
        CHUNKED + b"2\r\nhello\r\n",
        b"x" * (HEAD_LIMIT + 1),
        CHUNKED + b"5" + b";" * (HEAD_LIMIT + 1),
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        taken(data)
