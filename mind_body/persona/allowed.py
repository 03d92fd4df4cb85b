"""Loop: what the governor says before each turn of a run, as part of T3a (design §3): brake and dial, spending, loop budget.

It is the rule that opened the run, asked anew: another turn of it, or her Self beside it, may have spent the rest of the day's cap,
and a bot may have been answered as often as it may. What a wake alone depends on (cadence, quiet hours, pauses) is not asked again.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from mind_body.control.effective import Released
from mind_body.control.govern import Ask, House, Skip, govern, window_of
from mind_body.control.loops import Budget, judge_mail
from mind_body.control.people import is_operator
from mind_body.mind.places import read_places, read_turns_today
from mind_body.mind.records import Heard, RunKind
from mind_body.mind.rooms import read_members
from mind_body.mind.runs import live_run
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Standing, WaitingMail
from mind_body.mind.wakes import read_standing, read_waiting_mail
from mind_body.money import parse_usd
from mind_body.persona.burn import Burn
from mind_body.settings import HostConfig, MindConfig


@dataclass(frozen=True, slots=True)
class Allowed:
    """A turn may be taken."""

    turned_away: tuple[WaitingMail, ...]
    """Mail that brings none now."""
    burn: Burn


def ask_again(tx: Transaction, config: MindConfig, host: HostConfig, control: Released, now: int) -> Allowed | Skip:
    """The one answer."""
    window = window_of(host, now)
    standing = read_standing(tx, RunKind.PERSONA_TURN, window)
    # The live run is this one; an operator's wake is what no quiet hours hold back.
    verdict = govern(Ask("operator", now), replace(standing, live=None, pauses=(), recent=()), control, House(config, host), now)
    if isinstance(verdict, Skip):
        return verdict
    waiting = read_waiting_mail(tx)
    places = read_places(tx, {(one.room_id, one.thread) for one in waiting})
    budget = Budget(places, read_turns_today(tx, window), config)
    at_work = live_run(tx, RunKind.SELF_RUN) is not None
    return Allowed(
        tuple(one for one in waiting if judge_mail(one, budget) is not None), _burn(standing, config, control, at_work=at_work)
    )


def is_among_operators(
    tx: Transaction, config: MindConfig, conversation: str, room_ids: Collection[str], mail: Collection[Heard]
) -> bool:
    """Whether this is a direct conversation with operators and nobody else."""
    members = {user for room_id in room_ids for user, membership in read_members(tx, room_id) if membership in {"join", "invite"}}
    others = (members | {heard.sender for heard in mail}) - {config.matrix.user}
    return conversation.startswith("direct:") and bool(others) and all(is_operator(user, config.people) for user in others)


def _burn(standing: Standing, config: MindConfig, control: Released, *, at_work: bool) -> Burn:
    return Burn(
        spent_day=standing.spent_day,
        cap_day=parse_usd(config.spend.day_usd) * (1 + standing.extensions_day),
        spent_month=standing.spent_month,
        cap_month=parse_usd(config.spend.month_usd) * (1 + standing.extensions_month),
        heat=control.dial.heat,
        self_at_work=at_work,
    )
