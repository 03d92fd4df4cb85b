"""Rule: who is told that she does not answer now, and why (design §9, cases M3, W2). Fixed sentences, and each of them once.

1. People who wait are told by the oldest message that waits in their room: whatever comes after it in the same wait, and whoever
   starts anew, it is the same notice. A room of which nobody has been told yet is told when somebody writes there.
2. At once: a limit of the plan, a cap of spending, what only an operator can mend, and quiet hours, to those whom they hold back.
   An overload, a fault and a lost network from the third time in a row on, or where they wait long: most pass by themselves.
3. Nobody is told of a wait that is over before a notice would be read, and bots are not told of any.
4. People in a conversation that has cost what it may, or whose next call no run could pay for, are told by the oldest message that
   waits there, too. In the second case no wait helps, and no instant is promised.
5. A room or thread that has had its turns is told once until a person speaks; the room of an account that has had its turns of the
   day once in that day.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mind_body.control.govern import Skip
from mind_body.control.loops import TurnedAway, name_stretch
from mind_body.control.people import is_operator
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.records import NewSaid, Pause
from mind_body.mind.wake_facts import Place, WaitingMail
from mind_body.settings import MindConfig

WORTH_TELLING_MS = 3_000
"""A shorter wait is over before a notice would be read."""
STRIKES = 3
LONG_MS = 3_600_000
PASSING = frozenset({"overloaded", "fault", "network"})
AT_ONCE: Mapping[str, NoticeKey] = {
    "limited": NoticeKey.LIMITED,
    "spend": NoticeKey.SPENT,
    "budget": NoticeKey.SPENT,
    "authentication": NoticeKey.UNREACHABLE,
    "payment": NoticeKey.UNREACHABLE,
}
"""By the cause of a pause."""


@dataclass(frozen=True, slots=True)
class Told:
    """A notice, and what the journal has to say of it where it is new."""

    row: NewSaid
    away: TurnedAway | None = None
    """What it is about, where that is mail that brings no turn."""
    turns: int = 0
    """Those that the place has had."""


def plan_tell(waiting: Sequence[WaitingMail], skip: Skip, pauses: Sequence[Pause], config: MindConfig, now: int) -> list[Told]:
    """What is said about a skip, one notice for each room. `waiting`: the oldest first."""
    key, until = _about(skip, pauses)
    if key is None or until - now < WORTH_TELLING_MS:
        return []
    oldest: dict[str, WaitingMail] = {}
    for mail in waiting:
        if mail.person and not (skip.kind == "quiet" and is_operator(mail.sender, config.people)):
            oldest.setdefault(mail.room_id, mail)
    return [
        Told(render_notice(config.persona.language, key, one.oldest_event, room_id, thread=one.thread or None, until=until))
        for room_id, one in oldest.items()
    ]


def plan_turned_away(
    turned_away: Sequence[TurnedAway], places: Mapping[tuple[str, str], Place], config: MindConfig, day: str, until: int
) -> list[Told]:
    """What is said about mail that brings no turn. `day`: the operator's, which ends at `until`."""
    found: dict[str, Told] = {}
    for one in turned_away:
        if one.until is not None:
            told, key = _capped(one, config), f"cap {one.mail.room_id}"
        else:
            told = _spent(one, places, config) if one.kind == "loop" else _ceiling(one, config, day, until)
            key = told.row.id if told is not None else ""
        if told is not None:
            found.setdefault(key, told)
    return list(found.values())


def _about(skip: Skip, pauses: Sequence[Pause]) -> tuple[NoticeKey | None, int]:
    """Which sentence, and until when; none where nobody is told."""
    if skip.kind == "quiet":
        return NoticeKey.QUIET, skip.look_again_at
    if skip.kind == "spend":
        return NoticeKey.SPENT, skip.look_again_at
    pause = next((one for one in pauses if one.cause == skip.cause), None) if skip.kind == "paused" else None
    if pause is None:
        return None, 0
    if pause.cause not in PASSING:
        return AT_ONCE.get(pause.cause), pause.until
    long = pause.until - (pause.since or pause.until) >= LONG_MS
    return (NoticeKey.UNREACHABLE if long or pause.strikes >= STRIKES else None), pause.until


def _spent(one: TurnedAway, places: Mapping[tuple[str, str], Place], config: MindConfig) -> Told | None:
    place = places.get((one.mail.room_id, one.mail.thread))
    if place is None:
        return None
    thread, cause = name_stretch(place, config)
    row = render_notice(config.persona.language, NoticeKey.LOOP_SPENT, cause, one.mail.room_id, thread=thread)
    return Told(row, one, max(place.turns_here, place.turns_room))


def _capped(one: TurnedAway, config: MindConfig) -> Told | None:
    mail = one.mail
    if not mail.person:
        return None
    thread, language = mail.thread or None, config.persona.language
    key = NoticeKey.TOO_DEAR if one.kind == "dear" else NoticeKey.SPENT
    return Told(render_notice(language, key, mail.oldest_event, mail.room_id, thread=thread, until=one.until or 0))


def _ceiling(one: TurnedAway, config: MindConfig, day: str, until: int) -> Told:
    cause, language = f"{one.mail.sender}:{day}", config.persona.language
    thread, room_id, who = one.mail.thread or None, one.mail.room_id, one.mail.sender
    row = render_notice(language, NoticeKey.CEILING, cause, room_id, thread=thread, who=who, until=until)
    return Told(row, one)
