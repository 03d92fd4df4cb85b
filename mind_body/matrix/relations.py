"""Rule: what a said row relates to, written into its content when it is sent. Apart from `speech.py`: the mouth renders nothing.

1. A row names events that were known when it was queued, and said rows whose events are known when they have been sent.
2. A thread whose root never came is no thread: its messages stand in the room by themselves. A reaction or an edit without the
   event that it is about is nothing at all.
"""

from typing import Any

from mind_body.mind.records import Said, SaidKind


def relate_content(said: Said, events: dict[str, str]) -> dict[str, Any] | None:
    """The content that is sent; None where it is about something that was never sent. `events`: said id → event id."""
    if said.kind is SaidKind.EDIT:
        edited = events.get(said.edits or "")
        return {**said.content, "m.relates_to": {"rel_type": "m.replace", "event_id": edited}} if edited else None
    target = said.reply_to or events.get(said.after_said or "")
    if said.kind is SaidKind.REACTION:
        annotation = {**said.content.get("m.relates_to", {}), "event_id": target}
        return {**said.content, "m.relates_to": annotation} if target else None
    thread = said.thread or events.get(said.thread_said or "")
    if thread:
        answered = {"m.in_reply_to": {"event_id": target or thread}, "is_falling_back": target is None}
        return {**said.content, "m.relates_to": {"rel_type": "m.thread", "event_id": thread, **answered}}
    return {**said.content, "m.relates_to": {"m.in_reply_to": {"event_id": target}}} if target else said.content
