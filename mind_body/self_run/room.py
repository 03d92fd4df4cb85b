"""Rule: what a Self says in the room, as said rows: the thread's first message, how it goes, and the end (design §8).

1. Ids are made from the run, so that saying it again says it once, whoever does: whoever takes a run up again queues the same rows.
2. The first run's message is the root of the thread, and replies to the message that asked. All else is in that thread, and may be
   queued before the root was sent.
3. How it goes is one message, edited in place. An edit's number is its place among all edits of that message.
4. The end is a message of its own: how the run ended in our words, then the result's first bytes as they are. What it costs is
   shown only where operators alone read along; an error's text and its reason are for the journal.
5. Nobody is mentioned: these are notices, and who asked is told by her Persona.
"""

from dataclasses import dataclass, field
from typing import Any

from mind_body.control.people import is_operator
from mind_body.ids import derived_id
from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.markdown import render_html
from mind_body.matrix.notices import NoticeKey, render_notice, render_sentence
from mind_body.matrix.speech import clean_text
from mind_body.mind.records import NewSaid, Room, SaidKind
from mind_body.mind.work_records import FollowUp
from mind_body.money import render_usd
from mind_body.self_run.actions import Outcome
from mind_body.settings import PeopleConfig

RESULT_BYTES = 4096
"""Of a result, in the room and in the journal (design §8)."""
DOING_CHARS = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run speaks."""

    run_id: str
    room_id: str
    thread_said: str
    """The said row that is the root of its thread."""
    language: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How it goes, as people are shown it."""

    doing: str
    """The last tool, or what else it is at."""
    elapsed_ms: int
    prefix_tokens: int
    ceiling_tokens: int
    cost_micro_usd: int | None = field(default=None)
    """None where it is not for everybody who reads along."""


def progress_id(run_id: str) -> str:
    """The said id of the message that is edited in place."""
    return f"self-progress-{run_id}"


def render_root(place: Place, work: FollowUp) -> NewSaid:
    """What it is doing and for whom."""
    text = render_sentence(place.language, NoticeKey.SELF_BEGINS, who=work.asked_by, brief=_quote(work.brief))
    return NewSaid(
        place.thread_said,
        SaidKind.NOTICE,
        place.room_id,
        "m.room.message",
        _content(place.thread_said, text),
        reply_to=work.asked_in,
    )


def render_continues(place: Place) -> NewSaid:
    """A later run of the same work begins. One that died is spoken of by who found it dead."""
    return render_notice(place.language, NoticeKey.SELF_CONTINUES, place.run_id, place.room_id, thread_said=place.thread_said)


def render_progress(place: Place, figures: Figures) -> NewSaid:
    """The message itself, queued once."""
    said_id = progress_id(place.run_id)
    content = _plain(said_id, _told(place, NoticeKey.SELF_PROGRESS, figures))
    return _in_thread(place, said_id, content)


def render_edit(place: Place, number: int, figures: Figures, *, over: bool = False) -> NewSaid:
    """Its `number`th edit, from 1. `over`: the run has ended, and this is the last one."""
    edited = progress_id(place.run_id)
    said_id = f"{edited}.{number}"
    text = _told(place, NoticeKey.SELF_OVER if over else NoticeKey.SELF_PROGRESS, figures)
    new = {"msgtype": "m.notice", "body": text, "m.mentions": {}}
    content = {**_plain(said_id, f"* {text}"), "m.new_content": new}
    return NewSaid(said_id, SaidKind.EDIT, place.room_id, "m.room.message", content, edits=edited)


def render_end(place: Place, outcome: Outcome, result: str) -> NewSaid:
    """How the run ended, and what it came to; an empty result is none."""
    parts = [render_sentence(place.language, NoticeKey(f"self_ended_{outcome.replace('-', '_')}"))]
    if (clean := clean_text(result).strip()) and (kept := cut_bytes(clean, RESULT_BYTES)):
        parts += [kept] if kept == clean else [kept, render_sentence(place.language, NoticeKey.SELF_RESULT_CUT)]
    said_id = derived_id("self-end", place.run_id)
    return _in_thread(place, said_id, _content(said_id, "\n\n".join(parts)))


def render_figures(figures: Figures) -> str:
    """One line: the last tool, elapsed, prefix of ceiling, cost."""
    shares = figures.prefix_tokens * 100 // figures.ceiling_tokens if figures.ceiling_tokens else None
    parts = [
        " ".join(clean_text(figures.doing).split())[:DOING_CHARS],
        render_elapsed(figures.elapsed_ms),
        "" if shares is None else f"{shares} % of {figures.ceiling_tokens:,} tokens",
        "" if figures.cost_micro_usd is None else render_usd(figures.cost_micro_usd),
    ]
    return " · ".join(part for part in parts if part)


def render_elapsed(ms: int) -> str:
    """Rounded down, in one or two units."""
    seconds = max(ms, 0) // 1000
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours = seconds // 60 % 60, seconds // 3600
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def shows_cost(room: Room | None, asked_by: str, people: PeopleConfig) -> bool:
    """Whether operators alone read along: a DM with one of them."""
    return room is not None and room.direct and is_operator(asked_by, people)


def cut_bytes(text: str, most: int) -> str:
    """Its beginning, at most so many bytes of UTF-8, no character broken."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _told(place: Place, key: NoticeKey, figures: Figures) -> str:
    return render_sentence(place.language, key, figures=render_figures(figures))


def _in_thread(place: Place, said_id: str, content: dict[str, Any]) -> NewSaid:
    return NewSaid(said_id, SaidKind.NOTICE, place.room_id, "m.room.message", content, thread_said=place.thread_said)


def _plain(said_id: str, text: str) -> dict[str, Any]:
    return {"msgtype": "m.notice", "body": text, "m.mentions": {}, SAID_KEY: said_id}


def _content(said_id: str, text: str) -> dict[str, Any]:
    """Text with Markdown in it, as a client shows it."""
    return {**_plain(said_id, text), "format": "org.matrix.custom.html", "formatted_body": render_html(text)}


def _quote(text: str) -> str:
    """Somebody's words, as a quote that they cannot end."""
    return "\n".join(f"> {line}" for line in clean_text(text).split("\n"))
