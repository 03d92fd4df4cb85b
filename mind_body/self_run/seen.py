"""Rule: what one child of a Self has shown by its lines, over all the runs that it serves.

1. A message of ours is open from its write until the child says that it is done, or a result names it. A result that names nobody
   (older CLIs) ends them all.
2. A turn of its own making (finished background work) has no message: it begins with `init` and ends with its result.
3. A folded message is done before the turn that it was folded into: the turn is over only with its result, or, without one, when
   the message that began it is done.
"""

from dataclasses import dataclass, field

from mind_body.model.lines import (
    Assistant,
    BackgroundTasks,
    CompactBoundary,
    ControlResponse,
    ConversationReset,
    Event,
    Init,
    KeepAlive,
    Lifecycle,
    RateLimit,
    Result,
    ToolProgress,
    User,
)

INITIALIZE, WINDOW, END = "initialize", "window", "end"
"""How our control requests' ids begin."""
DONE = frozenset({"completed", "cancelled", "failed", "discarded"})


@dataclass(slots=True)
class Seen:
    """Fed with every event; the driver tells it what was written."""

    session_id: str
    started_at: int
    ready: bool = False
    refused: str = ""
    """Why `initialize` was."""
    version: str = ""
    window_tokens: int | None = None
    leaf: str | None = None
    """The id of the newest message of the main thread: where the transcript ends."""
    background: int = 0
    last_line_at: int = 0
    end_refused: bool = False
    limit_until: int | None = None
    """A limit of the plan, as the CLI told it last (ms since the epoch)."""
    compacted: list[CompactBoundary] = field(default_factory=list)
    """In this run: the CLI shortened the session by itself."""
    in_turn: bool = False
    _open: dict[str, bool] = field(default_factory=dict)
    """Messages of ours that are not done, and whether they have started."""
    _began: str | None = None
    """The message that the turn began with; None in a turn of its own making."""

    @property
    def busy(self) -> bool:
        return self.in_turn or bool(self._open)

    def wrote(self, uuid: str) -> None:
        """A message of ours was written."""
        self._open[uuid] = False

    def has_started(self, uuid: str) -> bool:
        return self._open.get(uuid, False)

    def see(self, event: Event, now: int) -> None:
        if not isinstance(event, KeepAlive | ToolProgress):
            self.last_line_at = now
        match event:
            case ControlResponse():
                self._answered(event)
            case Init():
                self.version, self.in_turn = event.version or self.version, True
            case Lifecycle(user_uuid=uuid, state=state):
                self._lives(uuid, state)
            case Assistant(parent=None, error=None) | User(parent=None):
                self.leaf = event.uuid or self.leaf
            case Result():
                self._ended(event)
            case _:
                self._beside(event)

    def _beside(self, event: Event) -> None:
        """What is told beside the turns."""
        match event:
            case BackgroundTasks(ids):
                self.background = len(ids)
            case RateLimit(status="rejected", resets_at=at):
                self.limit_until = None if at is None else at * 1000
            case CompactBoundary():
                self.compacted.append(event)
            case ConversationReset():
                self.leaf = None

    def _answered(self, event: ControlResponse) -> None:
        if event.request_id == INITIALIZE:
            self.ready, self.refused = event.ok, event.error
        elif event.request_id == WINDOW:
            window = event.response.get("rawMaxTokens") or event.response.get("maxTokens")
            self.window_tokens = window if isinstance(window, int) and window > 0 else self.window_tokens
        elif event.request_id.startswith(END):
            self.end_refused = self.end_refused or not event.ok

    def _lives(self, uuid: str, state: str) -> None:
        if uuid not in self._open:
            return
        if state in DONE:
            del self._open[uuid]
            if self._began == uuid:
                self.in_turn, self._began = False, None
        elif state == "started":
            self._open[uuid] = True
            if not self.in_turn:
                self.in_turn, self._began = True, uuid

    def _ended(self, event: Result) -> None:
        self.in_turn, self._began = False, None
        self.window_tokens = event.window_tokens or self.window_tokens
        self.limit_until = None if event.well else self.limit_until
        if not event.user_uuids:
            self._open.clear()
        for uuid in event.user_uuids:
            self._open.pop(uuid, None)
