"""Rule: which mail may still bring her a turn, where bots talk with each other (design §9, cases W2).

1. Counted are her turns since a person last spoke: in the thread (or the room outside threads), and in the whole room, so that a
   new thread for every message buys nothing. At `loop_turns` nobody but a person gets another.
2. A person's own message is never turned away by the budget: it is the word that begins the count anew.
3. What one account writes brings at most `counterpart_turns` turns a day, persons and bots alike; operators are not counted.
4. A conversation that has cost what it may brings none until its cap is renewed, and holds up no other.
5. What is turned away stays where it is. It is told in the room once, and once in the journal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mind_body.control.govern import RUN_CAP, Skip
from mind_body.control.people import is_operator, listed
from mind_body.mind.wake_facts import PendingMail, Place, WaitingMail
from mind_body.settings import MindConfig, PeopleConfig

HOME_SPENT = "she has spoken in her home room as often as she may until a person does"
"""Why there is no scheduled wake."""


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Mail that brings no turn now.

    `kind`: `loop` until a person speaks there, `ceiling` until the day is over, `cap`, `dear` until one run may cost more.
    """

    mail: WaitingMail
    kind: str
    reason: str
    until: int | None = None
    """When it may again, where that is known of it alone."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Pending mail, parted."""

    pending: tuple[PendingMail, ...]
    """What may wake her, by conversation, the oldest first."""
    turned_away: tuple[TurnedAway, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """What the counts are held against."""

    places: Mapping[tuple[str, str], Place]
    """By room id and thread; a place that is not there has no turns."""
    today: Mapping[str, int]
    """Her turns today for what an account wrote."""
    config: MindConfig
    held: Mapping[str, Skip] = field(default_factory=dict)
    """Conversations that are held up, each by itself."""


def is_person(user_id: str, people: PeopleConfig, *, marked: bool) -> bool:
    """Whether who wrote a message is a person: an operator is, on whatever other list. `marked`: it bears our Minds' mark, or is a
    notice.
    """
    known = is_operator(user_id, people) or listed(user_id, people.persons)
    return known and not marked and not listed(user_id, people.bots)


def is_spent(place: Place | None, config: MindConfig) -> bool:
    """Whether a room or thread has had all the turns that bots get there."""
    return place is not None and max(place.turns_here, place.turns_room) >= config.persona.loop_turns


def name_stretch(place: Place, config: MindConfig) -> tuple[str | None, str]:
    """The thread (None: outside threads) in which a spent place is told, and the cause that the one notice about it is made from.

    Where all of the room is spent it is told there: a new thread for every message would hear of it every time.
    """
    if place.turns_room >= config.persona.loop_turns:
        return None, f":{place.spoke_room_seq}"
    return place.thread or None, f"{place.thread}:{place.spoke_seq}"


def judge_mail(mail: WaitingMail, budget: Budget) -> TurnedAway | None:
    """Whether one sender's mail in one place is turned away, and why."""
    most, place = budget.config.persona.loop_turns, budget.places.get((mail.room_id, mail.thread))
    if not mail.person and place is not None and is_spent(place, budget.config):
        where = "thread" if mail.thread and place.turns_here >= most else "room"
        return TurnedAway(mail, "loop", f"she has taken {most} turns since a person last spoke in this {where}")
    ceiling = budget.config.persona.counterpart_turns
    if budget.today.get(mail.sender, 0) >= ceiling and not is_operator(mail.sender, budget.config.people):
        return TurnedAway(mail, "ceiling", f"she has taken {ceiling} turns for {mail.sender} today")
    skip = budget.held.get(mail.conversation)
    if skip is None:
        return None
    return TurnedAway(mail, "dear" if skip.cause == RUN_CAP else "cap", skip.reason, skip.look_again_at)


def sift_mail(waiting: Sequence[WaitingMail], budget: Budget) -> Sifted:
    """What may wake her, and what may not."""
    pending: dict[str, PendingMail] = {}
    turned_away: list[TurnedAway] = []
    for mail in waiting:
        verdict = judge_mail(mail, budget)
        if verdict is not None:
            turned_away.append(verdict)
            continue
        one = PendingMail(mail.conversation, mail.count, mail.oldest_at, mail.newest_at, (mail.sender,))
        before = pending.get(mail.conversation)
        pending[mail.conversation] = one if before is None else _joined(before, one)
    ordered = sorted(pending.values(), key=lambda one: (one.oldest_at, one.conversation))
    return Sifted(tuple(ordered), tuple(turned_away))


def _joined(a: PendingMail, b: PendingMail) -> PendingMail:
    senders = a.senders if set(b.senders) <= set(a.senders) else (*a.senders, *b.senders)
    return PendingMail(a.conversation, a.count + b.count, min(a.oldest_at, b.oldest_at), max(a.newest_at, b.newest_at), senders)
