"""Rule: what answers a question to the operators (design §9).

1. Only an operator answers, and only in the room where it was asked. An event that bears our Minds' mark and a notice never do.
2. A reaction to the question answers it: ✅ or 👍 reopens, ❌ or 👎 retires.
3. So does a message that is nothing but one of the words (or one of these signs): as a reply to the question or in its thread,
   else where exactly one question is open in the room. By itself it must be a word that means nothing else, or come right after the
   question: "yes" to something that she has said since is no answer to it.
4. A question is answered once; whatever else is said in that room is ordinary mail.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mind_body.control.people import is_operator
from mind_body.matrix.events import Message, Reaction
from mind_body.mind.asking_records import Answer
from mind_body.mouth.words import lone_word, plain_sign
from mind_body.settings import PeopleConfig

UNMISTAKABLE: Mapping[str, Answer] = {"reopen": "reopen", "retire": "retire"}
WORDS: Mapping[str, Answer] = {
    **UNMISTAKABLE,
    "again": "reopen",
    "yes": "reopen",
    "go on": "reopen",
    "no": "retire",
    "stop": "retire",
    "leave it": "retire",
}
SIGNS: Mapping[str, Answer] = {"✅": "reopen", "👍": "reopen", "❌": "retire", "👎": "retire"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions that are open in one room, as far as its people can see them."""

    events: Mapping[str, str] = field(default_factory=dict)
    """Event id → question id."""
    said: Mapping[str, str] = field(default_factory=dict)
    """Said id → question id, of those whose event may not be known yet."""
    last: str | None = None
    """The newest event of hers in the room, where it is known."""
    heard: frozenset[str] = frozenset()
    """Those messages that were heard before, and come again."""

    def heard_her(self, event: Message) -> "Asked":
        """She has said something: perhaps the question itself, whose receipt may not be stored yet."""
        question = self.said.get(event.said_id or "")
        events = {**self.events, event.event_id: question} if question else self.events
        return replace(self, events=events, last=event.event_id)

    def without(self, question_id: str) -> "Asked":
        """It has been answered."""
        events = {event: question for event, question in self.events.items() if question != question_id}
        return replace(self, events=events, said={said: one for said, one in self.said.items() if one != question_id})


NOTHING_ASKED = Asked()


def judge_word(event: Message, asked: Asked, *, user_id: str, name: str, people: PeopleConfig) -> tuple[str, Answer] | None:
    """(question id, answer) of a message that answers; `name` is her display name, empty for none."""
    if not asked.events or event.event_id in asked.heard or not is_operator(event.sender, people):
        return None
    if event.said_id or event.msgtype not in {"m.text", "m.emote"}:
        return None
    answer, plain = _read(event.body, user_id, name)
    question = _meant(event, asked, plain=plain)
    return (question, answer) if answer and question else None


def judge_sign(event: Reaction, asked: Asked, people: PeopleConfig) -> tuple[str, Answer] | None:
    """The same of a reaction."""
    answer, question = SIGNS.get(plain_sign(event.key)), asked.events.get(event.target)
    if event.said_id or not answer or not question or not is_operator(event.sender, people):
        return None
    return question, answer


def _read(text: str, user_id: str, name: str) -> tuple[Answer | None, bool]:
    """What it says, and whether it can mean nothing else."""
    sign = SIGNS.get(plain_sign(text))
    if sign:
        return sign, False
    word = lone_word(text, WORDS, user_id, name)
    return (WORDS[word], word in UNMISTAKABLE) if word else (None, False)


def _meant(event: Message, asked: Asked, *, plain: bool) -> str | None:
    """Which question the message is about."""
    targets = [target for target in (event.reply_to, event.thread) if target]
    if targets:
        return next((asked.events[target] for target in targets if target in asked.events), None)
    open_here = set(asked.events.values())
    if len(open_here) != 1:
        return None
    return open_here.pop() if plain or asked.last in asked.events else None
