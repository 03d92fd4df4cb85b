"""A credential is in nothing that a server says, however the text comes, and all else is as it was."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mind_body.model.blot import Blotter, blot, blot_headers

SECRET = "aab-aac"
TEXTS = st.lists(st.sampled_from([SECRET, "a", "aab", "aab-", "-aac", "b", "\n", "é", "*"]), max_size=12).map(
    lambda parts: "".join(parts).encode()
)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    text = draw(TEXTS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    edges = [0, *cuts, len(text)]
    return text, [text[a:b] for a, b in itertools.pairwise(edges)]


@given(cut_texts())
def test_a_text_in_pieces_is_blotted_as_the_whole_text_is(cut: tuple[bytes, list[bytes]]) -> None:
    text, pieces = cut
    blotter = Blotter(SECRET)
    told = b"".join([*map(blotter.feed, pieces), blotter.end()])
    assert told == blot(text, SECRET)
    assert SECRET.encode() not in told
    assert len(told) == len(text)


@given(cut_texts())
def test_nothing_is_kept_back_for_longer_than_it_may_be_the_secret(cut: tuple[bytes, list[bytes]]) -> None:
    blotter, given_on = Blotter(SECRET), 0
    fed = b""
    for piece in cut[1]:
        fed += piece
        given_on += len(blotter.feed(piece))
        assert given_on == len(fed) or SECRET.encode().startswith(blot(fed, SECRET)[given_on:])


@given(TEXTS)
def test_without_a_secret_a_text_goes_on_as_it_is(text: bytes) -> None:
    assert blot(text, None) == Blotter(None).feed(text) == Blotter("").feed(text) == text


def test_a_header_that_quotes_it_does_not() -> None:
    headers = {"www-authenticate": f'Bearer error="{SECRET}"', "x-name": "müller"}
    assert blot_headers(headers, SECRET) == {"www-authenticate": 'Bearer error="*******"', "x-name": "müller"}
    assert blot_headers(headers, None) == headers
