"""Wiring: `mind why`: why a Mind acts or does not, in sentences, by the facts and rules that the heartbeat goes by."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import click

from mind_body.cli.mind_status import DEAF_AFTER_MS
from mind_body.cli.minds import find_minds, opened
from mind_body.cli.reasons import Explained, Known, Topic, explain
from mind_body.cli.render import render_plain
from mind_body.cli.why_facts import Eyes, read_spent_caps, read_stops
from mind_body.clock import now_ms, render_utc
from mind_body.config import read_host_config, read_mind_config
from mind_body.control.effective import Held
from mind_body.errors import MindBodyError
from mind_body.heartbeat.claim import Claim
from mind_body.heartbeat.wake import Open, Wait
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.mind.place_reports import read_busy_places
from mind_body.mind.questions import read_open_questions
from mind_body.mind.reports import read_figures
from mind_body.money import render_usd

WITHOUT = {
    "heartbeat": "nothing begins",
    "mouth": "she hears nobody, and nothing that she says is sent",
    "lease": "no model is called",
}
"""What does not happen without each daemon, the worst first."""


@dataclass(frozen=True, slots=True)
class _Why:
    """What is told."""

    known: Known
    explained: Explained
    stopped: list[str]
    notes: list[str]
    """What else holds her off, or waits for the operator."""


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def why(home: Home, name: str, as_json: bool) -> None:
    """Say why NAME acts or does not, for people's mail, for scheduled wakes and for work, and when she next may.

    It looks as the heartbeat does, by the same facts and rules, and changes nothing.

    \b
    JSON: {mind, at (ms since 1970), time_zone, stopped (daemons that do not run: then nothing else counts), brake ("held" or
        "released"), reason (why held), topics: [{name ("mail", "scheduled wakes" or "work"), state ("acting": a run is live, "now":
        with the heartbeat's next look, "waits": until next_at, or "rests": time alone brings nothing), told (one sentence), because
        (sentences: each thing that holds it up, and until when), next_at (ms, or null)}], next_at (the first of them, or null),
        decided {persona {answer ("open", "wait" or "rest"), reason, until (or null)}, self {answer ("claim", "wait" or "rest"),
        reason, until}} (what the heartbeat's rules come to), notes (sentences: questions, spent places, what the ledger refuses)}
    """
    find_minds(home, [name])
    told = _look(home, name)
    if as_json:
        click.echo(json.dumps(_as_json(told), indent=2, ensure_ascii=False))
        return
    for line in _render(home, told):
        click.echo(render_plain(line))


def _look(home: Home, name: str) -> _Why:
    config, host, now = read_mind_config(home, name), read_host_config(home), now_ms()
    with opened(home, name) as mind, mind.read() as tx:
        known = Eyes(home, host, name).read(tx, config, now)
        asked = len(read_open_questions(tx))
        heard_until = read_figures(tx, now).heard_until
        places = [(place.room_id, place.thread) for place in read_busy_places(tx, config.persona.loop_turns)]
    stopped = [organ for organ in WITHOUT if read_holder(home.lock_file(organ)) is None]
    deaf = "mouth" not in stopped and (heard_until or 0) < now - DEAF_AFTER_MS
    notes = [*(_deaf(heard_until) if deaf else ()), *_asked(name, asked), *_places(places), *_purse(home, known)]
    return _Why(known, explain(known), stopped, notes)


def _deaf(heard_until: int | None) -> Iterator[str]:
    since = f"since {render_utc(heard_until)}" if heard_until else "yet"
    yield f"She has not heard her homeserver {since}, so that nobody's message reaches her: `mind doctor` says what is wrong."


def _asked(name: str, count: int) -> Iterator[str]:
    if count:
        waits = "A question waits" if count == 1 else f"{count} questions wait"
        yield f"{waits} for an operator's answer: `mind questions {name}`."


def _places(places: list[tuple[str, str]]) -> Iterator[str]:
    for room_id, thread in places:
        where = f"the thread {thread} of {room_id}" if thread else room_id
        yield f"In {where} bots get no more answers until a person speaks there."


def _purse(home: Home, known: Known) -> Iterator[str]:
    """What the lease would say; the heartbeat goes by her own record, and does not ask it."""
    try:
        for cap in read_spent_caps(known, home):
            whose = "All Minds together have" if cap.mind is None else "She has"
            used = f"{render_usd(cap.committed)} of {render_usd(cap.cap)} for {cap.window}"
            yield f"{whose} used up {used} by the ledger: the lease refuses what costs; again {known.when(cap.opens_at)}."
        for stop in read_stops(known, home):
            again = "until an operator has mended it" if stop.until is None else f"now; again {known.when(stop.until)}"
            yield f"The lease makes no call with her credential {again} ({stop.kind}: {stop.reason})."
    except MindBodyError as error:
        yield f"The ledger cannot be read, and the lease refuses everything: {error}."


def _render(home: Home, told: _Why) -> Iterator[str]:
    known = told.known
    if told.stopped:
        words = " ".join(f"The {organ} is stopped: {WITHOUT[organ]}." for organ in told.stopped)
        yield f"{words} {'`mind up` runs them.' if home.root is not None else '`systemctl start mind.target` starts them.'}"
    if isinstance(known.control, Held):
        yield f"{known.name} is held: {known.control.reason}. She hears, and does nothing else (`mind brake release {known.name}`)."
    for topic in told.explained.topics:
        yield f"{topic.name[0].upper()}{topic.name[1:]}: {topic.told}"
        yield from (f"    {line}" for line in topic.because)
    yield from told.notes
    yield f"Times are those of {known.house.host.time_zone}."


def _as_json(told: _Why) -> dict[str, Any]:
    known, held = told.known, isinstance(told.known.control, Held)
    topics = told.explained.topics
    return {
        "mind": known.name,
        "at": known.now,
        "time_zone": known.house.host.time_zone,
        "stopped": told.stopped,
        "brake": "held" if held else "released",
        "reason": known.control.reason if isinstance(known.control, Held) else "",
        "topics": [_topic(topic) for topic in topics],
        "next_at": min((topic.next_at for topic in topics if topic.next_at is not None), default=None),
        "decided": {"persona": _decision(told.explained.decided), "self": _decision(told.explained.claimed)},
        "notes": told.notes,
    }


def _topic(topic: Topic) -> dict[str, Any]:
    return {**asdict(topic), "because": list(topic.because)}


def _decision(answer: Any) -> dict[str, Any]:
    words = {Open: "open", Claim: "claim", Wait: "wait"}
    until = answer.until if isinstance(answer, Wait) else None
    return {"answer": words.get(type(answer), "rest"), "reason": answer.reason, "until": until}
