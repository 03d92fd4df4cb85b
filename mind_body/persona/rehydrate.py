"""Rule: what a fresh session is told of the conversation before it (design §7): the last dialogue, whole messages, newest first.

It names what it left out and where that is. The new mail is never shortened for it.
"""

from collections.abc import Sequence

from mind_body.matrix.outside import clean, quote
from mind_body.mind.turning import Dialogue
from mind_body.persona.batch import charged
from mind_body.persona.prompt import Persona, Scene, render_message, render_small

BYTES_MAX = 16_000
MESSAGES_MAX = 200
"""Messages looked at; their bytes decide."""


def rehydration_budget(window_tokens: int) -> int:
    """Bytes, one token charged for each: an eighth of the window, at most 16,000."""
    return min(BYTES_MAX, window_tokens // 8)


def render_rehydration(me: Persona, dialogue: Sequence[Dialogue], scene: Scene, window_tokens: int, *, more: bool) -> str:
    """The text that goes before the first input; empty without a past. `more`: the dialogue given is not all there is."""
    lines: list[str] = []
    left = rehydration_budget(window_tokens)
    for one in reversed(dialogue):
        line = _line(me, one, scene)
        left -= charged(line) + 1
        if left < 0:
            break
        lines.insert(0, line)
    omitted = len(dialogue) - len(lines)
    if not dialogue:
        return ""
    return "\n".join([_title(me, omitted, more=more), *lines])


def _title(me: Persona, omitted: int, *, more: bool) -> str:
    if me.small:
        return "Earlier:"
    if not omitted and not more:
        return "# Earlier in this conversation"
    count = f"more than {omitted}" if more else str(omitted)
    where = f"`mind history {me.name}` shows them to your operator"
    return f"# Earlier in this conversation\n({count} older messages are left out; {where}.)"


def _line(me: Persona, one: Dialogue, scene: Scene) -> str:
    if one.heard is not None:
        return render_small(me, one.heard, one.at) if me.small else render_message(me, one.heard, scene)
    if me.small:
        return f"{me.name}: " + " / ".join(line.strip() for line in clean(one.said).split("\n") if line.strip())
    return f"[{one.room.handle}] you said:\n{quote(one.said)}"
