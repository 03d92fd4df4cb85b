"""Rule: one run as its driver knows it: what was seen, what was done, and the facts that `decide` is asked with.

1. Nothing is decided here. Each `note_` writes down one action as `actions` says; `see` one event of the child's.
2. Messages wait in one line: the start message, then what people say, in order. A child that is reopened is told them all again.
3. The turn that held the newest flush message is the flush's, and no other answer is its hand-off.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mind_body.model.lines import Assistant, Event, Lifecycle, Result
from mind_body.self_run.actions import EndSession, Interrupt, Why, WriteFlush
from mind_body.self_run.facts import Child, Facts, Flush, Ladder, Standing, Verdict
from mind_body.self_run.meter import Meter
from mind_body.self_run.outcome import judge_result
from mind_body.self_run.seen import DONE, Seen

SAID_MAX = 4_000
"""Characters of the newest text that are kept for a hand-off from the record."""
TOLD_BY = ("command", "file_path", "notebook_path", "pattern", "url", "query", "description", "prompt")
"""What a tool's input is told by, the first that is there."""
DOING_MAX = 120


@dataclass(frozen=True, slots=True)
class Message:
    """What waits to be said to the child."""

    name: str
    text: str = field(repr=False)
    uuid: str
    steer_id: str | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Who or what wants the run ended, as it stands now."""

    held: str | None = None
    stopped: str | None = None
    spent: str | None = None
    capped: str | None = None
    limited: str | None = None


@dataclass(slots=True)
class ChildNow:
    """The process as the driver sees it."""

    started_at: int
    gone: bool = False
    deaf: bool = False
    drained: bool = False
    exit_code: int | None = None
    words: str = ""
    deaf_at: int | None = None
    gone_at: int | None = None

    def look(self, now: int) -> None:
        """Note when what is so now began."""
        if self.deaf and self.deaf_at is None:
            self.deaf_at = now
        if self.gone and self.gone_at is None:
            self.gone_at = now


@dataclass(slots=True)
class Course:
    """From adopting to recording."""

    began_at: int
    seen: Seen
    meter: Meter
    child: ChildNow
    waiting: deque[Message] = field(default_factory=deque)
    given: list[Message] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    answered: bool = False
    doing: str = ""
    """The newest tool of the main thread, in a few words; empty before there was one."""
    said: str = field(default="", repr=False)
    """The newest text of the main thread."""
    last_write_at: int = 0
    reopened: bool = False
    result: Verdict | None = None
    result_text: str = field(default="", repr=False)
    flush: Flush | None = None
    flush_uuid: str = ""
    answer: str = field(default="", repr=False)
    """The newest answer to a flush, and the one before it, where the newest was asked to be shorter."""
    kept_answer: str = field(default="", repr=False)
    handoff_stored: bool = False
    ladder: Ladder = field(default_factory=Ladder)
    recorded: bool = False
    _flush_done: bool = False
    _error: str | None = None
    """Of the turn's newest synthetic line."""
    _retold: set[str] = field(default_factory=set)
    """Steers that a child was given that is gone: they wait again, and are on record as given."""

    def facts(self, now: int) -> Facts:
        self.child.look(now)
        ladder = replace(self.ladder, end_refused=self.ladder.ended_at is not None and self.seen.end_refused)
        return Facts(
            now=now,
            began_at=self.began_at,
            child=self._child(),
            window_tokens=self.seen.window_tokens,
            next_message=self.waiting[0].name if self.waiting else None,
            fed=len(self.given),
            busy=self.seen.busy,
            answered=self.answered,
            background=self.seen.background,
            last_line_at=self.seen.last_line_at or self.seen.started_at,
            last_write_at=self.last_write_at,
            tool_limit_ms=self.meter.tool_limit_ms,
            prefix_tokens=self.meter.prefix_tokens,
            result=self.result,
            flush=self.flush,
            handoff_stored=self.handoff_stored,
            ladder=ladder,
            held=self.calls.held,
            stopped=self.calls.stopped,
            spent=self.calls.spent,
            capped=self.calls.capped,
            limited=self.calls.limited,
            recorded=self.recorded,
        )

    def see(self, event: Event, now: int) -> None:
        """One event; `seen` and `meter` are fed here, too."""
        self.seen.see(event, now)
        self.meter.see(event)
        match event:
            case Assistant(parent=None, error=None, blocks=blocks):
                self.answered = True
                for block in blocks:
                    self.doing = describe_tool(block) or self.doing
                    self.said = str(block.get("text") or self.said)[:SAID_MAX]
            case Assistant(parent=None, error=error):
                self._error = error
            case Lifecycle(user_uuid=self.flush_uuid, state=state) if self.flush is not None:
                self._flush_lives(self.flush, state, now)
            case Result():
                self._end_turn(event)

    def set_steers(self, steers: Sequence[Message]) -> None:
        """What people have said and the child was not given yet, as it reads now: it may have been edited, or taken back."""
        kept = [one for one in self.waiting if one.steer_id is None or one.steer_id in self._retold]
        self.waiting = deque([*kept, *steers])

    def is_retold(self, message: Message) -> bool:
        return message.steer_id in self._retold

    def note_fed(self, message: Message, now: int) -> None:
        self.waiting.remove(message)
        self.given.append(message)
        self.seen.wrote(message.uuid)
        self.last_write_at = now
        self.result, self.result_text = None, ""

    def note_flush(self, asked: WriteFlush, uuid: str, now: int) -> None:
        before = self.flush
        self.kept_answer = self.answer if asked.ask == "shorter" else ""
        self.flush = Flush(
            asked.ask,
            asked.reason,
            now,
            self.meter.prefix_tokens,
            kept_bytes=before.answer_bytes if before is not None and asked.ask == "shorter" else None,
        )
        self.flush_uuid, self._flush_done, self.answer = uuid, False, ""
        self.seen.wrote(uuid)
        self.last_write_at = now

    def note_interrupt(self, action: Interrupt, now: int) -> None:
        if action.why is Why.OVERRAN and self.flush is not None:
            self.flush = replace(self.flush, interrupted_at=now)
        else:
            self.ladder = replace(self.ladder, why=action.why, reason=action.reason, interrupted_at=now)

    def note_end_session(self, action: EndSession, now: int) -> None:
        why, reason = (self.ladder.why, self.ladder.reason) if self.ladder.why else (action.why, action.reason)
        self.ladder = replace(self.ladder, why=why, reason=reason, ended_at=now)

    def note_closed(self, now: int) -> None:
        self.ladder = replace(self.ladder, closed_at=now)

    def note_terminated(self, now: int) -> None:
        self.ladder = replace(self.ladder, terminated_at=now)

    def note_killed(self, now: int) -> None:
        self.ladder = replace(self.ladder, killed_at=now)

    def note_reopened(self, seen: Seen, meter: Meter, child: ChildNow) -> None:
        self.seen, self.meter, self.child = seen, meter, child
        self.reopened, self.result, self.result_text = True, None, ""
        self.waiting.extendleft(reversed(self.given))
        self._retold |= {one.steer_id for one in self.given if one.steer_id}
        self.given.clear()

    def _child(self) -> Child:
        now = self.child
        standing = Standing.READY if self.seen.ready else Standing.STARTING
        standing = Standing.GONE if now.gone else Standing.DEAF if now.deaf else standing
        words = now.words or self.seen.refused
        return Child(standing, now.started_at, now.deaf_at, now.gone_at, now.drained, now.exit_code, words, self.reopened)

    def _flush_lives(self, flush: Flush, state: str, now: int) -> None:
        if state == "started" and flush.started_at is None:
            self.flush = replace(flush, started_at=now)
        elif state in DONE:
            self._flush_done = True
            # Folded in, it is done before its turn is: the answer is still to come.
            if flush.started_at is None or not self.seen.in_turn:
                self.flush = replace(flush, over=True)

    def _end_turn(self, event: Result) -> None:
        self.answered = self.answered or event.output_tokens > 0
        flush = self.flush
        if flush is not None and not flush.over and self._held_flush(flush, event):
            self.answer = event.text if event.well else ""
            size = len(self.answer.encode("utf-8", "replace"))
            self.flush = replace(flush, over=True, answer_bytes=size or None)
        else:
            self.result, self.result_text = judge_result(event, self._error), event.text
        self._error = None

    def _held_flush(self, flush: Flush, event: Result) -> bool:
        if event.user_uuids:
            return self.flush_uuid in event.user_uuids
        return flush.started_at is not None or self._flush_done


def describe_tool(block: Mapping[str, Any]) -> str:
    """A tool and what it is at, in one line; empty for a block that calls none."""
    if block.get("type") != "tool_use":
        return ""
    given = block.get("input")
    values = given if isinstance(given, Mapping) else {}
    about = next((value for key in TOLD_BY if isinstance(value := values.get(key), str) and value.strip()), "")
    name = str(block.get("name") or "a tool")
    return " ".join(f"{name}: {about}".split() if about else [name])[:DOING_MAX]
