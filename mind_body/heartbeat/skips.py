"""Loop: why a Mind is not woken now, one journal line for each reason, and none again while it stays the same (design §11)."""

from mind_body.clock import render_utc
from mind_body.heartbeat.observe import Seen
from mind_body.heartbeat.wake import Open, Rest, Wait
from mind_body.log import Journal


class SkipTeller:
    """What was last told of one Mind."""

    __slots__ = ("_away", "_journal", "_name", "_told")

    def __init__(self, name: str, journal: Journal) -> None:
        self._name = name
        self._journal = journal
        self._told: tuple[str, str] | None = None
        self._away: tuple[str, str] | None = None

    def tell(self, seen: Seen, *, opened: bool) -> None:
        """What waits and what is turned away."""
        self._tell_waiting(seen, opened=opened)
        self._tell_turned_away(seen)

    def forget(self) -> None:
        self._told, self._away = None, None

    def _tell_waiting(self, seen: Seen, *, opened: bool) -> None:
        decision, what = seen.decision, _waiting(seen)
        if opened or what is None:
            self._told = None
            return
        reason = "for a beat of the host on which she is picked" if isinstance(decision, Open) else decision.reason
        if self._told == (what, reason):
            return
        self._told = (what, reason)
        self._journal.bind(MIND=self._name).note(
            "wake.skipped" if isinstance(decision, Rest) else "wake.queued",
            f"{what}: {reason}.",
            REASON=reason,
            PENDING=sum(mail.count for mail in seen.facts.pending),
            UNTIL=render_utc(decision.until) if isinstance(decision, Wait) else None,
        )

    def _tell_turned_away(self, seen: Seen) -> None:
        if seen.verdict is not None:
            return  # a run is live: what it turns away is not known, and what was told stays told
        count = sum(one.mail.count for one in seen.turned_away)
        reason = "; ".join(dict.fromkeys(one.reason for one in seen.turned_away))
        told = (_count(count, "brings no turn", "bring no turn"), reason) if count else None
        if told is not None and told != self._away:
            self._journal.bind(MIND=self._name).note("wake.skipped", f"{told[0]}: {reason}.", REASON=reason, PENDING=count)
        self._away = told


def _waiting(seen: Seen) -> str | None:
    """What waits, in words; None where nothing does."""
    count = sum(mail.count for mail in seen.facts.pending)
    if count:
        return _count(count, "waits", "wait")
    if isinstance(seen.decision, Rest):
        return None
    return "Work of hers that is over waits to be told" if seen.facts.awaited else "A scheduled wake waits"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} message {one}" if number == 1 else f"{number} messages {many}"
