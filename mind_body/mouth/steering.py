"""Rule: what a message in the thread of a running Self comes to: a steer, a stop, or neither.

A stop is the word alone, in any case and with any punctuation, addressed to her or to nobody: "stop", "Stop!", "@ada:example.org:
STOP". Anything longer is for the Self to read ("stop the server, then go on").
"""

from typing import Literal

from mind_body.control.people import may_steer
from mind_body.matrix.events import Edit, Message
from mind_body.mouth.words import lone_word
from mind_body.settings import PeopleConfig

STOP = "stop"
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
    return lone_word(text, (STOP,), user_id, name) is not None
