"""Loop: one question of a half, one answer, one line in the journal.

1. The brake outranks everything: it is read first, and anew for every question that may have a consequence.
2. What is answered was committed before. What the ledger cannot hold (gone, newer, corrupt, a full disk) is refused, and so is what
   cannot be decided for a file that cannot be read. The ledger is tried anew with the next question.
3. No secret is in an answer, a line or the ledger.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from mind_body.clock import local_day, local_month, now_ms, render_utc
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import ConfigError, CredentialError, LedgerError, MindBodyError, StorageError
from mind_body.home import Home
from mind_body.host.peers import Peer
from mind_body.lease.grant import refuse
from mind_body.lease.house import House
from mind_body.lease.keys import find_key, lend_key
from mind_body.lease.ledger import KEPT_MONTHS, prune, read_figures
from mind_body.lease.ledger_file import LedgerPlace
from mind_body.lease.reserve import Reserver, bind_peer
from mind_body.lease.seldom import Seldom
from mind_body.lease.settle import report, settle
from mind_body.log import Journal
from mind_body.model.lease_lines import Answer, Borrow, Granted, Lent, Noted, Question, Refused, Report, Reserve, Settle
from mind_body.money import render_usd

LEDGER_WAIT_MS = 15_000
"""When to ask again where the ledger cannot be used: whoever mends it changes none of the files that the heartbeat looks at."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why the ledger cannot be used."""

    sentence: str
    writing: bool
    """It showed when something was to be written: that it can be read proves nothing."""


class Desk:
    """Answers for the life of the organ."""

    def __init__(self, home: Home, journal: Journal, clock: Callable[[], int] = now_ms) -> None:
        self._home = home
        self._journal = journal
        self._clock = clock
        self._house = House(home)
        self._place = LedgerPlace(home.ledger)
        self._reserver = Reserver(home, self._house, journal)
        self._seldom = Seldom()
        self._fault: _Fault | None = None

    def answer(self, peer: Peer, question: Question) -> tuple[Answer, int | None]:
        """The answer, and a descriptor to go with it, which is the caller's to close. Never raises for a file or a disk."""
        try:
            answer, descriptor = self._answer(peer, question)
        except CredentialError as error:
            answer, descriptor = refuse("authentication", str(error)), None
        except ConfigError as error:
            answer, descriptor = refuse("fault", str(error)), None
        except (LedgerError, StorageError) as error:
            self._lose_ledger(error, writing=True)
            answer, descriptor = refuse("fault", str(error), self._clock() + LEDGER_WAIT_MS), None
        except Exception as error:  # noqa: BLE001 - what one Mind's files or rows do must not end the lease of all
            answer, descriptor = refuse("fault", f"the lease could not decide it ({type(error).__name__})"), None
        if isinstance(answer, Refused):
            self._tell_refused(peer, question, answer)
        return answer, descriptor

    def look(self) -> str:
        """Open the ledger where it is not; how things stand, in a few words."""
        now = self._clock()
        try:
            zone = self._house.read_host().time_zone
            with self._place.open().read() as tx:
                spent, open_calls = read_figures(tx, local_day(now, zone), now)
        except (LedgerError, StorageError) as error:
            self._lose_ledger(error, writing=False)
        except ConfigError as error:
            return f"Refusing every call: {error}"
        else:
            if self._fault is not None and not self._fault.writing:
                self._regain_ledger()
        if self._fault is not None:
            return f"Refusing every call: {self._fault.sentence}"
        return f"{render_usd(spent)} today, {open_calls} {'call' if open_calls == 1 else 'calls'} open"

    def prune(self) -> None:
        """Forget what no cap asks for any more. What stands in the way is told by `look`."""
        now = self._clock()
        at = now - KEPT_MONTHS * 31 * 86_400_000
        try:
            before = local_month(at, self._house.read_host().time_zone)
            with self._place.open().write() as tx:
                gone = prune(tx, before, at)
        except (LedgerError, StorageError, ConfigError):
            return
        if gone:
            calls = "1 call" if gone == 1 else f"{gone:,} calls"
            self._journal.note("ledger.pruned", f"Deleted from the ledger: {calls} of before {before}.")

    def close(self) -> None:
        self._place.close()

    def _answer(self, peer: Peer, question: Question) -> tuple[Answer, int | None]:
        now, journal = self._clock(), bind_peer(self._journal, peer)
        answer: Answer
        match question:
            case Borrow():
                return self._lend(peer, journal, now)
            case Reserve():
                answer = self._reserve(peer, question, now)
            case Settle():
                answer = settle(self._place.open(), peer, question, journal, now)
            case Report():
                answer = report(self._place.open(), peer, question, journal, now)
            case _:
                assert_never(question)
        if isinstance(answer, Granted | Noted):
            self._regain_ledger()
        return answer, None

    def _lend(self, peer: Peer, journal: Journal, now: int) -> tuple[Answer, int | None]:
        control = read_control(self._home, peer.mind)
        if isinstance(control, Held):
            return refuse("held", control.reason), None
        key = find_key(self._home, self._house.read_mind(peer.mind), peer)
        if key.kind == "none":
            return refuse("fault", "nothing to lend: her configuration says that there is no credential"), None
        descriptor = lend_key(key)
        if self._seldom.count(f"lent {peer}", now) is not None:
            journal.note("credential.lent", f"A credential is lent to her {peer.organ}.", CREDENTIAL=key.kind)
        return Lent(kind=key.kind), descriptor

    def _reserve(self, peer: Peer, ask: Reserve, now: int) -> Answer:
        control = read_control(self._home, peer.mind)
        if isinstance(control, Held):
            return refuse("held", control.reason)
        return self._reserver.reserve(self._place.open(), peer, ask, control, now)

    def _tell_refused(self, peer: Peer, question: Question, refused: Refused) -> None:
        kept = self._seldom.count(f"{peer} {question.ask} {refused.kind} {refused.reason}", self._clock())
        if kept is None:
            return
        journal = bind_peer(self._journal, peer).bind(WHY=refused.kind, **({"NOT_TOLD": kept} if kept else {}))
        until, why = None if refused.until is None else render_utc(refused.until), refused.reason
        match question:
            case Borrow():
                journal.note("credential.refused", f"A credential was not lent: {why}.", REASON=why)
            case Reserve(run=run, call=call):
                journal.note("call.refused", f"A call was refused: {why}.", REASON=why, RUN=run, CALL=call, UNTIL=until)
            case Settle(call=call):
                journal.note("settlement.refused", f"What a call cost was not written down: {why}.", REASON=why, CALL=call)
            case Report(run=run):
                journal.note("settlement.refused", f"What a run cost was not written down: {why}.", REASON=why, RUN=run)
            case _:
                assert_never(question)

    def _lose_ledger(self, error: MindBodyError, *, writing: bool) -> None:
        """Told once, until it can be used again."""
        self._place.close()
        if self._fault is None or self._fault.sentence != str(error):
            self._journal.note("ledger.fault", f"Every call is refused: {error}.", level="error")
        self._fault = _Fault(str(error), writing or (self._fault is not None and self._fault.writing))

    def _regain_ledger(self) -> None:
        if self._fault is not None:
            self._fault = None
            self._journal.note("ledger.recovered", "The ledger can be used again.")
