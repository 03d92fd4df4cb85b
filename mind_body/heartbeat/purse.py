"""Rule: when the operators are asked about her purse: a cap of spending is reached, and somebody waits (design §9).

Asked once about a day or a month. "Reopen" allows as much again until it is over, and where that is spent, too, they are asked
anew; "retire" leaves it at that. About a cap that is not hers alone, a conversation's or the host's, nobody is asked: only its
setting lifts it.
"""

from mind_body.clock import next_day, next_month, render_utc
from mind_body.control.govern import CONVERSATIONS, HOSTS, House, Skip, window_of
from mind_body.ids import derived_id
from mind_body.mind.asking_records import Question
from mind_body.mind.records import Pause
from mind_body.mind.wake_facts import Standing
from mind_body.money import parse_usd, render_usd


def plan_purse(skip: Skip | None, standing: Standing, house: House, now: int) -> Question | None:
    """What to ask where something waits on this skip; None where it is not about spending."""
    if skip is None:
        return None
    pause = next((one for one in standing.pauses if one.cause == skip.cause == "spend"), None)
    if skip.kind != "spend" and (pause is None or any(whose in pause.reason for whose in (CONVERSATIONS, HOSTS))):
        return None
    if pause is not None and pause.until <= now:
        return None  # only spread over the seconds after midnight: it was about the day before
    word = skip.cause.removeprefix("spend-") if pause is None else _word_of(pause, standing, house, now)
    spend, window, zone = house.config.spend, window_of(house.host, now), house.host.time_zone
    if word == "day":
        when = "today"
        about, until, extensions = f"day:{window.day}", next_day(now, zone), standing.extensions_day
        cap, spent = parse_usd(spend.day_usd), standing.spent_day
    else:
        when = "this month"
        about, until, extensions = f"month:{window.month}", next_month(now, zone), standing.extensions_month
        cap, spent = parse_usd(spend.month_usd), standing.spent_month
    reached = f"I have spent {render_usd(spent)} of the {render_usd(cap * (1 + extensions))} that I may spend {when}"
    why = f" ({pause.reason})" if pause is not None else ""
    text = f"{reached}{why}, and something waits. Going on allows {render_usd(cap)} more until {_show(until)}."
    return Question(derived_id("question", about, str(extensions)), "purse", about, text, now, None, None)


def _word_of(pause: Pause, standing: Standing, house: House, now: int) -> str:
    """The lease has refused a call that could have passed a cap; the pause ends with the day or the month that it was about."""
    day_ends, month_ends = next_day(now, house.host.time_zone), next_month(now, house.host.time_zone)
    if day_ends != month_ends:
        return "month" if pause.until > day_ends else "day"
    spend = house.config.spend  # the last day of a month: the one that less is left of
    left_of_day = parse_usd(spend.day_usd) * (1 + standing.extensions_day) - standing.spent_day
    left_of_month = parse_usd(spend.month_usd) * (1 + standing.extensions_month) - standing.spent_month
    return "month" if left_of_month < left_of_day else "day"


def _show(at: int) -> str:
    return render_utc(at).replace("T", " ").replace("Z", " UTC")
