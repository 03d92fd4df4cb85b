"""Rule: what a said row relates to, written into its content when it is sent. Apart from `speech.py`: the mouth renders nothing."""

from typing import Any

from mind_body.mind.records import Said, SaidKind


def relate_content(said: Said, after_event: str | None) -> dict[str, Any]:
    """The content that is sent. `after_event` is the event of the said row that it relates to, where there is one."""
    target = said.reply_to or after_event
    if said.kind is SaidKind.REACTION:
        return {**said.content, "m.relates_to": {**said.content.get("m.relates_to", {}), "event_id": target}}
    if said.thread:
        answered = {"m.in_reply_to": {"event_id": target or said.thread}, "is_falling_back": target is None}
        return {**said.content, "m.relates_to": {"rel_type": "m.thread", "event_id": said.thread, **answered}}
    return {**said.content, "m.relates_to": {"m.in_reply_to": {"event_id": target}}} if target else said.content
