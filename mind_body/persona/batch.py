"""Rule: which mail the next turn takes (design §5).

1. Of the conversations granted, the one whose oldest mail is oldest; its mail in the mind's own order, without a hole.
2. It ends before 50 messages are passed, or a quarter of the window, one token charged per UTF-8 byte. The first message is taken
   whatever its size: mail is never shortened, and never starved.
3. A message that was part of 3 lost turns travels alone. The one whose newest lost turn had no other mail is the one that kills:
   it is not tried again.
4. A message that was part of 3 turns with a fault of the model's side goes behind all others, so that one that the model's server
   cannot take holds up nobody. Where it faults again although others were answered meanwhile, it travels alone; after 6 faults, the
   newest of them alone, it is to blame and not tried again. While nobody is answered, the model is: then nothing is given up.
5. Without mail there is no batch. Whether the wake itself is worth a turn, as a scheduled one is, is not decided here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from mind_body.matrix.outside import quote
from mind_body.mind.records import Heard
from mind_body.mind.turning import Mail

MESSAGES_MAX = 50
LOST_MAX = 3
"""Lost turns after which a message is tried alone."""
FAULTS_MAX = 3
"""Faults after which a message goes behind others; twice as many, and it may be to blame."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one turn answers; no mail where the wake itself is the reason."""

    conversation: str
    mail: tuple[Heard, ...]


@dataclass(frozen=True, slots=True)
class Kills:
    """This message is to be closed as failed."""

    mail: Mail


def next_batch(mail: Sequence[Mail], granted: Sequence[str], *, window_tokens: int) -> Batch | Kills | None:
    """None when there is no mail that this run may answer."""
    eligible = sorted((one for one in mail if one.conversation in granted), key=lambda one: one.heard.seq)
    if not eligible:
        return None
    first = min(eligible, key=lambda one: (_is_stuck(one), one.heard.seq))
    if _is_to_blame(first):
        return Kills(first)
    waiting = [one for one in eligible if one.conversation == first.conversation and _is_stuck(one) == _is_stuck(first)]
    together = [first] if _goes_alone(first) else takewhile(lambda one: not _goes_alone(one), waiting)
    return Batch(first.conversation, _fitting([one.heard for one in together], window_tokens // 4))


def _is_stuck(mail: Mail) -> bool:
    return mail.faults >= FAULTS_MAX


def _goes_alone(mail: Mail) -> bool:
    return mail.lost >= LOST_MAX or (_is_stuck(mail) and mail.proven)


def _is_to_blame(mail: Mail) -> bool:
    if mail.lost >= LOST_MAX and mail.killed_alone:
        return True
    return mail.faults >= 2 * FAULTS_MAX and mail.proven and mail.faulted_alone


def charged(text: str) -> int:
    """Tokens that a text is counted as before anybody counted them: one per UTF-8 byte, which no tokenizer exceeds."""
    return len(text.encode("utf-8", "replace"))


def _fitting(mail: Sequence[Heard], budget: int) -> tuple[Heard, ...]:
    taken, left = [mail[0]], budget - charged(mail[0].body)
    for heard in mail[1:MESSAGES_MAX]:
        left -= charged(heard.body)
        if left < 0:
            break
        taken.append(heard)
    return tuple(taken)


def fitting_context(lines: Sequence[Heard], *, lines_max: int = 20, bytes_max: int = 16 * 1024) -> tuple[Heard, ...]:
    """The newest context lines that fit, whole and in order."""
    taken: list[Heard] = []
    left = bytes_max
    for heard in list(lines)[::-1][:lines_max]:
        left -= charged(quote(heard.body))  # as it is shown: every line has its mark
        if left < 0:
            break
        taken.append(heard)
    return tuple(taken[::-1])
