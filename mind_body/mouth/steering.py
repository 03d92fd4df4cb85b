"""Rule: what a message in the thread of a running Self comes to: a steer, a stop, or neither.

A stop is the word alone, in any case and with any punctuation, addressed to her or to nobody: "stop", "Stop!", "@ada:example.org:
STOP". Anything longer is for the Self to read ("stop the server, then go on").
"""

from typing import Literal

from mind_body.control.people import may_steer
from mind_body.matrix.events import Edit, Message
from mind_body.settings import PeopleConfig

STOP = "stop"
_AROUND = " \t\r\n\u00a0.,:;!?…-–—*_`~\"'()"
"""What people and clients put around a word: punctuation, and the marks of Markdown."""
_PLAIN = {"m.text": "", "m.emote": ""}


def judge_steer(
    event: Message | Edit, *, user_id: str, name: str, people: PeopleConfig
) -> tuple[Literal["steer", "stop"] | None, str]:
    """What it is, and the text that is given on; None for somebody who may not steer."""
    if not may_steer(event.sender, people):
        return None, ""
    text = event.body if event.msgtype in _PLAIN else f"({event.msgtype.removeprefix('m.')}: {event.body})"
    return ("stop" if is_stop(text, user_id, name) else "steer"), text


def is_stop(text: str, user_id: str, name: str) -> bool:
    """Whether it is the word alone. `name` is her display name, empty for none."""
    labels = {user_id, name, user_id[1:].partition(":")[0]} - {""}
    words = _bare(text)
    return words == STOP or any(_addressed(words, _bare(label)) for label in labels)


def _addressed(words: str, label: str) -> bool:
    before, after = words.removeprefix(label), words.removesuffix(label)
    return any(
        rest != words and not rest[edge].isalnum() and _bare(rest) == STOP for rest, edge in ((before, 0), (after, -1)) if rest
    )


def _bare(text: str) -> str:
    return text.strip(_AROUND + "@").casefold() if len(text) <= 1000 else text
