"""X2: what she says, rendered and split so that no part breaks a character, a fence or the homeserver's limit."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.markdown import ALLOWED_TAGS, render_html
from mind_body.matrix.relations import relate_content
from mind_body.matrix.speech import CONTENT_MAX, clean_text, measure_content, render_reaction, render_say
from mind_body.matrix.split import Part, split_text
from mind_body.mind.records import NewSaid, SaidKind
from tests.builders import make_said
from tests.examples import share

FAMILY = "👩‍👩‍👧‍👦"
FENCE = (
    "```python\n" + "".join(f"print({number}, 'a line of code that says \"hello\" & <more>')\n" for number in range(400)) + "```\n"
)
TABLE = "| who | what |\n| --- | :-: |\n" + "".join(f"| Ada {n} | `x{n}` {FAMILY} |\n" for n in range(60))
PIECES = st.sampled_from(
    [
        "plain words, and more of them.\n",
        "\n",
        "# Heading\n\n",
        "- one\n- two\n  - three\n\n",
        "1. one\n2. two\n\n",
        "> quoted\n> more\n\n",
        "```py\nx = 1\n\ny = 2\n```\n",
        "~~~\nlong code line " + "z" * 80 + "\n~~~\n",
        "> ```sh\n> ls\n> cd\n> pwd\n> ```\n\n",
        "- item\n\n  ```js\n  let a\n  let b\n  ```\n\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n",
        "<b>&amp;</b> [x](javascript:alert) ![i](https://x/y.png)\n",
        FAMILY * 7 + "\n",
        "e\u0301" * 30 + " 🇩🇪🇫🇷🇯🇵 👍🏽👍🏿\n",
        "**bold\nover lines** ~~gone~~ `code`\n",
        "```\nnever closed\n",
        "    indented\n    code\n\n",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=40), max_size=12).map("".join).map(clean_text)


class Balanced(HTMLParser):
    """Raises where a tag is not on the list, not closed, or closed out of turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED_TAGS, tag
        assert {key for key, _ in attrs} <= {"href", "start", "class"}
        self.seen.add(tag)
        if tag not in {"br", "hr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"br", "hr"}:
            assert self.open, tag
            assert self.open.pop() == tag


def say(text: str, *, thread: str | None = None, reply_to: str | None = None) -> list[NewSaid]:
    return render_say("said-1", "!r:x", text, thread=thread, reply_to=reply_to)


def small(limit: int):  # type: ignore[no-untyped-def]
    return lambda part: len(part.body.encode()) + len(render_html(part.markdown).encode()) <= limit


def test_x2_a_text_of_200_kb_arrives_whole_and_every_part_stands_for_itself() -> None:
    prose = f"Some prose with {FAMILY}, **bold** words and a [link](https://example.org/?a=1&b=2).\n\n"
    text = (prose * 600 + TABLE + "\n" + FENCE + "\n" + prose * 900)[:-1]
    assert len(text.encode()) > 150_000
    text += "\n" + "🎈" * 13_000
    assert len(text.encode()) > 200_000
    rows = say(text)
    assert len(rows) >= 5
    bodies = [row.content["body"] for row in rows]
    assert join_bodies(bodies) == text
    for row in rows:
        assert measure_content(row.content) <= CONTENT_MAX
        Balanced(row.content["formatted_body"])
    assert len({row.id for row in rows}) == len(rows)
    # The table fits into a part and is not cut; the fence, twice its size as HTML, does not.
    assert sum("<table>" in row.content["formatted_body"] for row in rows) == 1
    assert sum("language-python" in row.content["formatted_body"] for row in rows) == 2


def join_bodies(bodies: list[str]) -> str:
    """The bodies joined, without the lines that close a cut fence and open it again."""
    joined = bodies[0]
    for body in bodies[1:]:
        reopened = joined.endswith("```") and body.startswith("```python\n")
        joined = joined.removesuffix("```") + body.removeprefix("```python\n") if reopened else joined + body
    return joined


def test_x2_a_fence_longer_than_an_event_is_closed_and_opened_again_with_its_language() -> None:
    code = FENCE.removeprefix("```python\n").removesuffix("```\n")
    text = f"Look:\n\n```python\n{code * 6}```\n\nThat is all."
    rows = say(text)
    coded = [row for row in rows if "print(" in row.content["body"]]
    assert len(coded) >= 3
    assert join_bodies([row.content["body"] for row in rows]) == text
    for row in coded:
        html = row.content["formatted_body"]
        Balanced(html)
        assert html.count('<code class="language-python">') == 1
        # No line of code has leaked out of the block or been cut.
        assert html.count("print(") == html.count("&lt;more&gt;')")
        assert "```" not in html


def test_x2_a_table_longer_than_an_event_has_its_header_in_every_parts_html() -> None:
    text = "| who | what |\n| --- | --- |\n" + "".join(f"| Ada {n} | {FAMILY} |\n" for n in range(1200))
    rows = say(text)
    assert len(rows) > 1
    assert "".join(row.content["body"] for row in rows) == text
    for row in rows:
        Balanced(row.content["formatted_body"])
        assert row.content["formatted_body"].count("<th>who</th>") == 1


def test_a_single_line_longer_than_an_event_is_cut_between_words_and_never_inside_an_emoji() -> None:
    words = "word " * 20_000
    assert all(row.content["body"].endswith("word ") for row in say(words))
    assert all(row.content["body"].count(FAMILY) * len(FAMILY) == len(row.content["body"]) for row in say(FAMILY * 5000))


@settings(deadline=None, max_examples=share(0.5))
@given(TEXTS, st.sampled_from([250, 400, 900]))
@example("```py\n" + "x" * 400 + "\n```\n", 250)
@example("- > ```py\n  > a\n  > " + "b " * 200 + "\n  > ```\n", 250)
@example(FAMILY * 100, 250)
def test_parts_joined_are_the_text_and_each_fits_and_parses(text: str, limit: int) -> None:
    parts = split_text(text, small(limit))
    assert "".join(part.source for part in parts) == text
    for part in parts:
        Balanced(render_html(part.markdown))
        assert small(limit)(part) or len(part.source) <= len(FAMILY)


@settings(deadline=None)
@given(st.lists(st.sampled_from([FAMILY, "e\u0301", "🇩🇪", "👍🏽", "a", "🎈", "☺️"]), min_size=20, max_size=120))
def test_no_cut_is_inside_a_character(characters: list[str]) -> None:
    # Four copies of a flag or an accent would be four characters: a cut may only stand where the list has a seam.
    text = "".join(characters)
    seams = {sum(map(len, characters[:n])) for n in range(len(characters) + 1)}
    position = 0
    for part in split_text(text, small(120)):
        position += len(part.source)
        assert position in seams


@given(TEXTS)
def test_html_has_only_what_matrix_allows(text: str) -> None:
    Balanced(render_html(text))


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("hello", "hello"),
        ("one\ntwo", "one<br />\ntwo"),
        ("**b** ~~s~~ *e*", "<strong>b</strong> <s>s</s> <em>e</em>"),
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("[x](https://e.org 'title')", '<a href="https://e.org">x</a>'),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](data:text/html;x)", "[x](data:text/html;x)"),
        ("![cat](https://e.org/c.png)", '!<a href="https://e.org/c.png">cat</a>'),
        ("3. c", '<ol start="3">\n<li>c</li>\n</ol>'),
        (
            "|a|\n|:-:|\n|1|",
            "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n</tr>\n</tbody>\n</table>",
        ),
    ],
)
def test_markdown_becomes_the_html_that_matrix_allows(source: str, html: str) -> None:
    assert render_html(source) == html


def test_nothing_to_say_is_no_row() -> None:
    assert say("") == []
    assert say(" \n\t\n") == []


def test_a_content_carries_its_said_id_and_mentions_whom_it_names() -> None:
    (row,) = say("ask @bob:example.org or mail bob@example.org")
    assert row.id == row.content[SAID_KEY] == "said-1"
    assert row.content["m.mentions"] == {"user_ids": ["@bob:example.org"]}
    assert say("hello @room")[0].content["m.mentions"] == {}


def related(row: NewSaid, **events: str) -> dict[str, Any]:
    content = relate_content(make_said(row), events)
    assert content is not None
    return content


def test_only_the_first_part_replies_and_all_are_in_the_thread() -> None:
    rows = say("word " * 15_000, thread="$root", reply_to="$asked")
    assert [row.reply_to for row in rows] == ["$asked"] + [None] * (len(rows) - 1)
    assert {row.thread for row in rows} == {"$root"}
    first, second = related(rows[0]), related(rows[1])
    assert first["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": "$root",
        "m.in_reply_to": {"event_id": "$asked"},
        "is_falling_back": False,
    }
    assert second["m.relates_to"]["m.in_reply_to"] == {"event_id": "$root"}
    assert second["m.relates_to"]["is_falling_back"] is True


def test_relations_leave_room_for_the_homeservers_own_fields() -> None:
    longest = "$" + "x" * 254
    (row,) = say("hi", thread=longest, reply_to=longest)
    assert measure_content(related(row)) - measure_content(row.content) < 1024


def test_a_plain_answer_has_no_relation_and_a_reply_has_one() -> None:
    assert "m.relates_to" not in related(say("hi")[0])
    assert related(say("hi", reply_to="$a")[0])["m.relates_to"] == {"m.in_reply_to": {"event_id": "$a"}}


def test_a_reaction_names_its_event_when_it_is_sent() -> None:
    row = render_reaction("said-2", "!r:x", "👍", "$liked")
    assert row.event_type == "m.reaction"
    content = related(row)
    assert content == {SAID_KEY: "said-2", "m.relates_to": {"rel_type": "m.annotation", "event_id": "$liked", "key": "👍"}}


def test_what_is_in_the_thread_of_a_said_row_names_its_event_and_stands_alone_where_that_never_came() -> None:
    row = replace(say("hi")[0], thread_said="root", after_said="first")
    assert related(row, root="$root", first="$first")["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": "$root",
        "m.in_reply_to": {"event_id": "$first"},
        "is_falling_back": False,
    }
    assert related(row, root="$root")["m.relates_to"]["is_falling_back"] is True
    assert "m.relates_to" not in related(row)


def test_an_edit_replaces_the_event_of_its_row_and_is_nothing_without_one() -> None:
    row = replace(say("hi")[0], kind=SaidKind.EDIT, edits="first", thread_said="root")
    assert related(row, root="$root", first="$first")["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$first"}
    assert relate_content(make_said(row), {"root": "$root"}) is None


@given(st.text() | st.just("\ud800\0\r\nx"))
def test_any_text_can_be_sent(text: str) -> None:
    for row in say(text):
        measure_content(row.content)
        assert "\0" not in row.content["body"]


def test_a_part_is_the_slice_and_what_was_put_around_it() -> None:
    assert Part("x\n", "```\n", "```").body == "```\nx\n```"
