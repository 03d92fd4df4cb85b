"""Loop: settling a call, and writing down what the CLI says that a run has cost.

1. A settlement changes its row once; a second one is noted and changes nothing.
2. One for a call that is not on record is recorded nowhere: nothing was promised for it.
3. What was wrong with the credential holds for all who call with it. It is dated by when its call was made: what an operator
   changed after that may have mended it.
"""

from typing import Literal

from mind_body.clock import render_utc
from mind_body.crash import crash_point
from mind_body.host.peers import Peer
from mind_body.lease.grant import PASSING, is_apart, is_over, make_stop, outlast
from mind_body.lease.ledger import KnownCall, admit_report, read_call, read_report, read_stops, save_stop, settle_call
from mind_body.lease.ledger_file import Ledger, Transaction
from mind_body.log import Journal
from mind_body.model.lease_lines import Noted, Report, Settle, Trouble
from mind_body.money import render_usd


def settle(ledger: Ledger, peer: Peer, ask: Settle, journal: Journal, now: int) -> Noted:
    """Raises LedgerError and StorageError; then nothing is settled, and it may be asked again."""
    with ledger.write() as tx:
        known = read_call(tx, peer.mind, ask.call)
        changed = known is not None and not known.settled
        if changed:
            crash_point("lease.before-settle")
            settle_call(tx, peer.mind, ask, now)
        told = known is not None and changed and ask.trouble is not None and _stop(tx, known, ask.trouble, now)
    if changed:
        crash_point("lease.settled")
    _tell(ask, known, journal)
    if told and ask.trouble is not None:
        _tell_stop(ask.trouble, journal)
    return Noted()


def report(ledger: Ledger, peer: Peer, ask: Report, journal: Journal, now: int) -> Noted:
    """Of a whole run so far; the newest counts. That the two are apart is told once for a run."""
    with ledger.write() as tx:
        before = read_report(tx, peer.mind, ask.run)
        admit_report(tx, peer.mind, ask, now)
    if is_apart(ask.ours_micro_usd, ask.theirs_micro_usd) and not (before and is_apart(*before)):
        ours, theirs = render_usd(ask.ours_micro_usd), render_usd(ask.theirs_micro_usd)
        journal.note(
            "cost.apart",
            f"The CLI says that calls cost {theirs}; by our prices they cost {ours}.",
            level="warning",
            RUN=ask.run,
            COST_MICRO_USD=ask.ours_micro_usd,
            THEIRS_MICRO_USD=ask.theirs_micro_usd,
        )
    return Noted()


def _stop(tx: Transaction, known: KnownCall, trouble: Trouble, now: int) -> bool:
    """Whether it says something new."""
    stop = make_stop(trouble.kind, trouble.until, trouble.reason, known.at, now)
    held = next((one for one in read_stops(tx, known.credential) if one.kind == stop.kind), None)
    if held is not None and is_over(held, 0, now):
        held = None
    save_stop(tx, known.credential, outlast(stop, held))
    return held is None or (stop.until or 0) > (held.until or 0)


def _tell(ask: Settle, known: KnownCall | None, journal: Journal) -> None:
    journal = journal.bind(CALL=ask.call, COST_MICRO_USD=ask.cost_micro_usd)
    if known is None:
        # Who got no answer to a reservation settles it at nothing, whether it was ever made or not.
        level: Literal["warning", "debug"] = "warning" if ask.cost_micro_usd else "debug"
        journal.note("call.unknown", "A call was settled that nobody had reserved.", level=level)
    elif known.settled:
        journal.note("call.settled-again", "A call was settled that was settled already.", level="debug", RUN=known.run)
    else:
        over = ask.cost_micro_usd > known.reserved
        more = f", more than the {render_usd(known.reserved)} that it was reserved at" if over else ""
        words = f"A call cost {render_usd(ask.cost_micro_usd)}{more}."
        journal.note("call.settled", words, level="warning" if over else "debug", RUN=known.run)


def _tell_stop(trouble: Trouble, journal: Journal) -> None:
    until = None if trouble.until is None else render_utc(trouble.until)
    ends = f"until {until}" if until else "for a moment" if trouble.kind in PASSING else "until an operator has mended it"
    words = f"No call is made with her credential {ends}: {trouble.reason}."
    journal.note("credential.stopped", words, level="warning", WHY=trouble.kind, UNTIL=until)
