"""Rule: notices, the fixed sentences that are not hers. One catalogue per language; any organ may queue one.

1. A notice is `m.notice`: never mail, to her or to any other bot (cases D7).
2. Its id is made from room, key and cause: the same cause is said once, whoever notices it, however often.
3. It tells the people in the room what they cannot see and what they can do. No error text, no figure of the operator's.
"""

from collections.abc import Mapping
from enum import StrEnum

from mind_body.clock import render_utc
from mind_body.ids import derived_id
from mind_body.matrix.events import SAID_KEY
from mind_body.mind.records import NewSaid, SaidKind


class NoticeKey(StrEnum):
    CANNOT_READ_ENCRYPTED = "cannot_read_encrypted"
    FAILED_MESSAGE = "failed_message"
    """One message brought her down again and again; it is closed. Value: none; it replies to that message."""
    LIMITED = "limited"
    """A plan limit. Value: `until`, ms since the epoch."""
    UNREACHABLE = "unreachable"
    """Whoever answers for her cannot be reached."""
    SPENT = "spent"
    """A cap of spending. Value: `until`."""
    TOO_DEAR = "too_dear"
    """One answer could cost more than she may spend on one, and no wait changes that. Value: none."""
    QUIET = "quiet"
    """She keeps quiet hours for everyone. Value: `until`."""
    LOOP_SPENT = "loop_spent"
    """She has answered bots so often in this room or thread that she waits for a person. Value: none."""
    CEILING = "ceiling"
    """One account has had all the turns of a day. Values: `who` (a user id), `until`."""
    QUESTION = "question"
    """Something that only an operator can decide. Value: `text`: what happened, and what going on would mean."""
    QUESTION_REOPENED = "question_reopened"
    """An operator has answered. Value: none; it replies to the question."""
    QUESTION_RETIRED = "question_retired"
    CONFIRM_START = "confirm_start"
    """Whether this work is really wanted. Values: `who` (a user id), `brief` (verbatim)."""
    MAY_NOT_STEER = "may_not_steer"
    """Said in the thread of work that is running, to somebody who may not direct it. Value: none; it replies to that message."""
    SELF_BEGINS = "self_begins"
    """The thread's first message. Values: `who`, `brief`."""
    SELF_CONTINUES = "self_continues"
    """Work that was left unfinished is taken up again, in its thread. Value: none."""
    SELF_INTERRUPTED = "self_interrupted"
    """A run died; its work is taken up again. Value: none."""
    SELF_DROPPED = "self_dropped"
    """The work came to nothing again and again and is not tried any more. Value: `count`."""
    SELF_PROGRESS = "self_progress"
    """The message in the thread that is edited in place. Value: `figures`."""
    SELF_OVER = "self_over"
    """What that message is edited to when the run has ended. Value: `figures`."""
    # How a run ended, one key for each outcome; what the work came to stands below it.
    SELF_ENDED_RESULT = "self_ended_result"
    SELF_ENDED_FLUSHED = "self_ended_flushed"
    SELF_ENDED_NO_RESULT = "self_ended_no_result"
    SELF_ENDED_INTERRUPTED = "self_ended_interrupted"
    SELF_ENDED_KILLED = "self_ended_killed"
    SELF_ENDED_DIED = "self_ended_died"
    SELF_ENDED_REFUSED = "self_ended_refused"
    SELF_ENDED_HELD = "self_ended_held"
    SELF_ENDED_BUDGET = "self_ended_budget"
    SELF_ENDED_LIMITED = "self_ended_limited"
    SELF_ENDED_SPEND = "self_ended_spend"
    SELF_ENDED_OVERLOADED = "self_ended_overloaded"
    SELF_ENDED_AUTHENTICATION = "self_ended_authentication"
    SELF_ENDED_PAYMENT = "self_ended_payment"
    SELF_RESULT_CUT = "self_result_cut"
    """Below a result that is too long for the room. Value: none."""


CATALOGUES: Mapping[str, Mapping[NoticeKey, str]] = {
    "en": {
        NoticeKey.CANNOT_READ_ENCRYPTED: (
            "This room is encrypted, and I cannot read encrypted messages yet. "
            "Please write to me in a room without encryption: make a new room and switch “Enable end-to-end encryption” off."
        ),
        NoticeKey.FAILED_MESSAGE: (
            "I could not answer this message: every attempt failed, so I have set it aside. Please ask in other words."
        ),
        NoticeKey.LIMITED: "I have used up what I may use for now. I will answer after {until}; nothing you write is lost.",
        NoticeKey.UNREACHABLE: (
            "I cannot think just now: my model cannot be reached. I will answer when it is back; nothing you write is lost."
        ),
        NoticeKey.SPENT: "I have spent what I may spend for now. I will answer after {until}; nothing you write is lost.",
        NoticeKey.TOO_DEAR: (
            "An answer could cost more than I may spend on one. Whoever runs me has to allow more: "
            "then I will answer; nothing you write is lost."
        ),
        NoticeKey.QUIET: "I keep quiet hours. I will answer after {until}; nothing you write is lost.",
        NoticeKey.LOOP_SPENT: (
            "I have answered here several times without a person saying anything, so I stop until one does. "
            "A word from a person here, and I go on."
        ),
        NoticeKey.CEILING: (
            "I have answered {who} as often as I may in one day. I will answer after {until}; until then others are heard as ever."
        ),
        NoticeKey.QUESTION: (
            "{text}\n\nReact with ✅ or answer “reopen” to let it go on; react with ❌ or answer “retire” to leave it at that."
        ),
        NoticeKey.QUESTION_REOPENED: "Understood: it goes on.",
        NoticeKey.QUESTION_RETIRED: "Understood: it is left at that.",
        NoticeKey.CONFIRM_START: (
            "{who}, is this what I should work on? React with ✅ to start it, or with ❌ to drop it.\n\n{brief}"
        ),
        NoticeKey.MAY_NOT_STEER: (
            "In this thread I am at work, and I take directions for it only from those who answer for it. "
            "Please write to me outside this thread; when the work is over, this thread is open to everybody again."
        ),
        NoticeKey.SELF_BEGINS: "I am working on this for {who}. How it goes is told in this thread.\n\n{brief}",
        NoticeKey.SELF_CONTINUES: "I am taking this work up again where it was left.",
        NoticeKey.SELF_INTERRUPTED: "My work on this was interrupted. It is taken up again from what was on record.",
        NoticeKey.SELF_DROPPED: "I have tried this {count} times and it came to nothing each time, so I have stopped trying.",
        NoticeKey.SELF_PROGRESS: "At work: {figures}",
        NoticeKey.SELF_OVER: "Was at work: {figures}",
        NoticeKey.SELF_ENDED_RESULT: "I am done.",
        NoticeKey.SELF_ENDED_FLUSHED: "I have put down what I know so far, and will go on from there by myself.",
        NoticeKey.SELF_ENDED_NO_RESULT: "I came to an end without a result.",
        NoticeKey.SELF_ENDED_INTERRUPTED: "I was stopped before I was done.",
        NoticeKey.SELF_ENDED_KILLED: "I had to be ended by force before I was done.",
        NoticeKey.SELF_ENDED_DIED: "My work broke off before I was done.",
        NoticeKey.SELF_ENDED_REFUSED: "I could not begin. Why is in the journal of whoever runs me.",
        NoticeKey.SELF_ENDED_HELD: "I have been told to pause. I will go on when I may.",
        NoticeKey.SELF_ENDED_BUDGET: "I have used up what this may cost for now.",
        NoticeKey.SELF_ENDED_LIMITED: "I have used up what I may use for now. I will go on when that is over.",
        NoticeKey.SELF_ENDED_SPEND: "I have used up what I may spend for now. I will go on when I may spend again.",
        NoticeKey.SELF_ENDED_OVERLOADED: "What I think with is overloaded. I will go on when it has room for me.",
        NoticeKey.SELF_ENDED_AUTHENTICATION: "I was not let in to what I think with. Whoever runs me has to mend that.",
        NoticeKey.SELF_ENDED_PAYMENT: "What I think with is not paid for. Whoever runs me has to mend that.",
        NoticeKey.SELF_RESULT_CUT: "(There is more of it; this is the beginning.)",
    },
}


def render_notice(
    language: str,
    key: NoticeKey,
    cause: str,
    room_id: str,
    *,
    thread: str | None = None,
    reply_to: str | None = None,
    thread_said: str | None = None,
    **values: int | str,
) -> NewSaid:
    """A said row. `cause` is what it is said once for: an event id, a turn, the end of a limit. Unknown language: English."""
    said_id = derived_id("notice", room_id, key, cause)
    content = {"msgtype": "m.notice", "body": render_sentence(language, key, **values), "m.mentions": {}, SAID_KEY: said_id}
    related = {"thread": thread, "reply_to": reply_to, "thread_said": thread_said}
    return NewSaid(said_id, SaidKind.NOTICE, room_id, "m.room.message", content, **related)


def render_sentence(language: str, key: NoticeKey, **values: int | str) -> str:
    """The text of a notice alone."""
    shown = {name: _show(name, value) for name, value in values.items()}
    return CATALOGUES.get(language, CATALOGUES["en"])[key].format_map(shown)


def _show(name: str, value: int | str) -> str:
    return render_utc(value).replace("T", " ").replace("Z", " UTC") if name == "until" and isinstance(value, int) else str(value)
