"""Rule: where bots talk with each other, what she says is kept back as their mail is turned away (design §9, cases W2).

1. A place that has had all its turns hears nothing more of her until a person speaks there. Where this very turn answers a person
   of that place, it does.
2. The turn that is being taken does not count against itself: the mind has counted it where its mail came from.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from mind_body.control.loops import is_spent
from mind_body.mind.records import Heard
from mind_body.mind.wake_facts import Place
from mind_body.persona.reply import Read, Say
from mind_body.settings import MindConfig

Pair: TypeAlias = tuple[str, str]
"""Room id and thread; the thread is empty for what is outside threads."""


def place_of(one: Heard | Say) -> Pair:
    return (one.room_id, one.thread or "")


def keep_back(read: Read, places: Mapping[Pair, Place], batch: Collection[Heard], config: MindConfig) -> Read:
    """The reply without what would go on in a spent place. `batch`: the mail that this turn answers."""
    persons, taken = {place_of(heard) for heard in batch if heard.person}, {place_of(heard) for heard in batch}
    spent = {pair for pair, place in places.items() if pair not in persons and is_spent(_before_this_turn(place, taken), config)}
    kept = tuple(say for say in read.say if place_of(say) not in spent)
    if len(kept) == len(read.say):
        return read
    reason = f"`say`: she has taken {config.persona.loop_turns} turns there since a person last spoke"
    return replace(read, say=kept, dropped=(*read.dropped, *[reason] * (len(read.say) - len(kept))), kept_back=True)


def _before_this_turn(place: Place, taken: Collection[Pair]) -> Place:
    here = (place.room_id, place.thread) in taken
    room = any(room_id == place.room_id for room_id, _ in taken)
    return replace(place, turns_here=place.turns_here - here, turns_room=place.turns_room - room)
