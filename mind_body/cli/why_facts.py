"""Door: everything that `mind why` explains, read by the heartbeat's own eyes. Nothing is written."""

from dataclasses import dataclass

from mind_body.cli.left import Cap, Committed, find_today, list_host_caps, list_mind_caps
from mind_body.cli.minds import opened
from mind_body.cli.reasons import Beat, Known, Verdict
from mind_body.config import list_minds, read_mind_config
from mind_body.control.effective import Control
from mind_body.control.files import read_control
from mind_body.control.govern import window_of
from mind_body.errors import MindBodyError
from mind_body.heartbeat.house import read_house
from mind_body.heartbeat.observe import Observer
from mind_body.heartbeat.tempo import next_beat, tempo
from mind_body.heartbeat.wake import judge_run
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.lease.grant import Stop, is_over
from mind_body.lease.ledger_read import read_pauses, read_totals
from mind_body.mind.claims import read_work_facts
from mind_body.mind.pulses import read_pulse
from mind_body.mind.records import RunKind
from mind_body.mind.store import Transaction
from mind_body.mind.wakes import read_last_beat
from mind_body.mind.work_records import WorkFacts
from mind_body.settings import HostConfig, MindConfig


@dataclass(frozen=True, slots=True)
class Eyes:
    """Whose, and where."""

    home: Home
    host: HostConfig
    name: str

    def read(self, tx: Transaction, config: MindConfig, now: int, *, beats: bool = True) -> Known:
        """One snapshot of her mind. `beats`: the host's beat, too, which is of all Minds, where she has scheduled wakes."""
        control = read_control(self.home, self.name)
        seen = Observer(self.name, self.home, self.host).see(tx, config, control, now)
        work = read_work_facts(tx, window_of(self.host, now))
        houses = (
            read_house(self.home, self.name, kind, config, self.host, paused=True)
            for kind in (RunKind.PERSONA_TURN, RunKind.SELF_RUN)
        )
        house, work_house = houses
        return Known(
            name=self.name,
            control=control,
            tried_anew=not seen.acked,
            house=house,
            work_house=work_house,
            wake=seen.facts,
            live=seen.verdict,
            turned_away=seen.turned_away,
            day_ends=seen.day_ends,
            work=work,
            work_live=self._judge_work(work, control, now),
            beat=read_beat(self.home, now) if beats and config.persona.beat and seen.facts.home is not None else None,
            now=now,
        )

    def _judge_work(self, work: WorkFacts, control: Control, now: int) -> Verdict:
        if work.live is None:
            return None
        return judge_run(work.live, read_holder(self.home.lock_file("self", self.name)), control, self.host, now)


def read_beat(home: Home, now: int) -> Beat:
    """The host's next beat, by what all its Minds have had and would have. Who cannot be read has no say, as at the heartbeat."""
    lasts: list[int | None] = []
    votes: list[int | None] = []
    for name in list_minds(home):
        try:
            beats = read_mind_config(home, name).persona.beat
            with opened(home, name) as mind, mind.read() as tx:
                pulse = read_pulse(tx)
                lasts.append(read_last_beat(tx))
        except MindBodyError:
            continue
        votes.append(pulse.tempo_s if pulse is not None and beats else None)
    apart_s = tempo(votes)
    return Beat(next_beat(lasts, apart_s, now), apart_s)


def read_spent_caps(known: Known, home: Home) -> list[Cap]:
    """Caps of which nothing is left by the ledger, which counts what is held back, too; where her own record does not say so."""
    if not home.ledger.exists():
        return []
    host, standing = known.house.host, known.wake.standing
    window = window_of(host, known.now)
    totals, today = read_totals(home.ledger, window.day, window.month), find_today(window, host.time_zone, known.now)
    own = totals.minds.get(known.name)
    committed = Committed(own.day, own.month) if own else Committed()
    extensions = Committed(standing.extensions_day, standing.extensions_month)
    caps = [
        *list_mind_caps(known.name, known.house.config.spend, committed, extensions, today),
        *list_host_caps(host.spend, Committed(totals.host.day, totals.host.month), today),
    ]
    recorded = {window.day: standing.spent_day, window.month: standing.spent_month}
    return [cap for cap in caps if cap.committed and not cap.left and (cap.mind is None or recorded[cap.window] < cap.cap)]


def read_stops(known: Known, home: Home) -> list[Stop]:
    """Why the lease makes no call with a credential of hers."""
    if not home.ledger.exists():
        return []
    mended_at = max(known.house.mended_at, known.work_house.mended_at)
    stops = [
        Stop(pause.kind, pause.until, pause.reason, pause.since) for pause in read_pauses(home.ledger) if known.name in pause.minds
    ]
    return [stop for stop in stops if not is_over(stop, mended_at, known.now)]
