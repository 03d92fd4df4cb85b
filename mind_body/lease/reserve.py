"""Loop: reserving a call: what is set and what is committed are read, the rule is asked, the row is written: one transaction.

1. A mind is opened for an operator's extensions only where a cap would be passed without them.
2. What is wrong with a credential, and over, is forgotten at the first call that finds it so: one call tries it for all.
"""

from dataclasses import dataclass, replace

from mind_body.clock import local_day, local_month
from mind_body.control.effective import Control
from mind_body.crash import crash_point
from mind_body.home import Home
from mind_body.host.peers import Peer
from mind_body.lease.grant import Asked, Caps, Standing, decide_grant, is_over
from mind_body.lease.house import House
from mind_body.lease.keys import Digests, Key, find_key
from mind_body.lease.ledger import NewCall, admit_call, clear_stop, raise_call, read_asked, read_key, read_standing
from mind_body.lease.ledger_file import Ledger, Transaction
from mind_body.log import Journal
from mind_body.model.lease_lines import Granted, Refused, Reserve
from mind_body.money import render_usd
from mind_body.settings import HostConfig, MindConfig


@dataclass(frozen=True, slots=True)
class _Set:
    """What the operator has set, for one question."""

    host: HostConfig
    mind: MindConfig
    key: Key


class Reserver:
    """Reserves calls of every half."""

    def __init__(self, home: Home, house: House, journal: Journal) -> None:
        self._home = home
        self._journal = journal
        self._house = house
        self._digests = Digests()

    def reserve(self, ledger: Ledger, peer: Peer, ask: Reserve, control: Control, now: int) -> Granted | Refused:
        """Raises ConfigError, CredentialError, LedgerError and StorageError; then nothing is reserved."""
        journal = bind_peer(self._journal, peer)
        config = self._house.read_mind(peer.mind)
        files = _Set(self._house.read_host(), config, find_key(self._home, config, peer))
        with ledger.write() as tx:
            call = self._make_call(tx, peer, ask, files, now)
            asked, standing = read_asked(tx, call), read_standing(tx, call)
            verdict = self._decide(asked, control, standing, files, call)
            self._forget_ended(tx, standing, files, call, journal)
            if isinstance(verdict, Granted):
                crash_point("lease.before-reserve")
                _admit(tx, call, asked)
        if isinstance(verdict, Granted):
            crash_point("lease.reserved")
            words = f"A call was reserved at {render_usd(call.ceiling)}."
            journal.note("call.reserved", words, level="debug", RUN=call.run, CALL=call.id, CONVERSATION=call.conversation)
        return verdict

    def _make_call(self, tx: Transaction, peer: Peer, ask: Reserve, files: _Set, now: int) -> NewCall:
        zone = files.host.time_zone
        return NewCall(
            mind=peer.mind,
            id=ask.call,
            half=peer.organ,
            run=ask.run,
            conversation=ask.conversation,
            credential=self._digests.read(files.key, peer, read_key(tx)),
            model=ask.model,
            ceiling=ask.ceiling_micro_usd,
            day=local_day(now, zone),
            month=local_month(now, zone),
            at=now,
        )

    def _decide(self, asked: Asked, control: Control, standing: Standing, files: _Set, call: NewCall) -> Granted | Refused:
        caps = Caps(files.mind.spend, files.host.spend, files.host.time_zone, self._mended_at(standing, files, call))
        verdict = decide_grant(asked, control, standing, caps, call.at)
        if isinstance(verdict, Refused) and verdict.kind == "spend":
            by_day, by_month = self._house.read_extensions(call.mind, call.day, call.month)
            if by_day or by_month:
                caps = replace(caps, extensions_day=by_day, extensions_month=by_month)
                verdict = decide_grant(asked, control, standing, caps, call.at)
        return verdict

    def _forget_ended(self, tx: Transaction, standing: Standing, files: _Set, call: NewCall, journal: Journal) -> None:
        for stop in standing.stops:
            if is_over(stop, self._mended_at(standing, files, call), call.at):
                clear_stop(tx, call.credential, stop.kind)
                journal.note("credential.tried-again", "Her credential is tried again.", WHY=stop.kind)

    def _mended_at(self, standing: Standing, files: _Set, call: NewCall) -> int:
        return self._house.read_mended_at(call.mind, files.key.path) if standing.stops else 0


def _admit(tx: Transaction, call: NewCall, asked: Asked) -> None:
    if asked.state == "new":
        admit_call(tx, call)
    elif asked.more > 0:
        raise_call(tx, call)


def bind_peer(journal: Journal, peer: Peer) -> Journal:
    return journal.bind(MIND=peer.mind, HALF=peer.organ)
