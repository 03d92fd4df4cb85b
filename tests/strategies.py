"""Hypothesis: any facts that a wake may depend on, in bounds that a mind can hold."""

from typing import Any

from hypothesis import strategies as st

from mind_body.clock import next_day
from mind_body.control.effective import Control, Dial, DialFile, Held, Released
from mind_body.control.govern import Ask, Cause, House
from mind_body.control.quiet import quiet_until
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.wake_facts import PendingMail, Standing, WaitingMail, WakeFacts
from mind_body.settings import HostConfig, MindConfig
from tests.builders import NOW, OPERATOR, make_config, make_run

DAY = 86_400_000
ZONES = ("UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe")
CAUSES: tuple[Cause, ...] = ("operator", "direct", "mention", "self_run", "beat", "work")
PAUSES = ("limited", "overloaded", "authentication", "payment", "budget", "spend", "fault", "network", "died")

instants = st.integers(NOW - 30 * DAY, NOW + 30 * DAY)
chances = st.floats(0, 1, exclude_max=True)
minutes = st.integers(0, 1439).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
spans = st.tuples(minutes, minutes).filter(lambda span: span[0] != span[1]).map("-".join)
days = st.lists(spans, max_size=2).map(tuple).filter(lambda quiet: quiet_until(quiet, "UTC", NOW) != next_day(NOW, "UTC"))
"""Quiet hours that leave something of the day."""


@st.composite
def dials(draw: st.DrawFn) -> Dial:
    """Any that a file may hold."""
    heat, cooldown = draw(st.floats(0.05, 2.0)), draw(st.floats(1, 604_800))
    file = DialFile(heat=heat, base_cooldown_s=cooldown, base_run_usd=draw(st.floats(0, 1000)))
    return Dial(file.heat, file.base_cooldown_s, file.base_run_usd)


releases: st.SearchStrategy[Control] = st.builds(Released, dials())
controls: st.SearchStrategy[Control] = st.one_of(releases, st.just(Held("the operator said so")))


@st.composite
def configs(draw: st.DrawFn) -> MindConfig:
    persona: dict[str, Any] = {
        "beat": draw(st.booleans()),
        "home_room": "!home:example.org",
        "quiet_hours": draw(days),
        "quiet_for": draw(st.sampled_from(["unprompted", "everyone"])),
        "debounce_s": draw(st.sampled_from([0.0, 1.5, 10.0])),
        "debounce_max_s": draw(st.sampled_from([0.0, 5.0])),
    }
    return make_config(persona=persona, spend={"day_usd": draw(st.sampled_from([0.0, 0.1, 10.0]))})


@st.composite
def houses(draw: st.DrawFn) -> House:
    host = HostConfig(
        time_zone=draw(st.sampled_from(ZONES)),
        look_s=draw(st.sampled_from([0.000_1, 0.01, 30.0, 1e6])),
        restart_min_s=draw(st.sampled_from([1e-6, 0.5, 100.0])),
        restart_max_s=draw(st.sampled_from([1e-6, 60.0, 1e9])),
    )
    return House(draw(configs()), host, draw(st.just(0) | instants), draw(chances))


@st.composite
def ended_runs(draw: st.DrawFn) -> Run:
    at = draw(instants)
    outcome = draw(st.sampled_from(["done", "dead", "held", "limited", "failed"]))
    return make_run(opened_at=at - 1000, ended_at=at, outcome=outcome, turns=draw(st.integers(0, 4)))


pauses = st.builds(
    Pause, st.sampled_from(PAUSES), instants, st.just("for a reason"), st.integers(0, 40), since=st.just(0) | instants
)
live_runs = st.sampled_from([make_run(), make_run(holder="me", held_at=NOW), make_run(kind=RunKind.SELF_RUN)])
standings = st.builds(
    Standing,
    live=st.none() | live_runs,
    pauses=st.lists(pauses, max_size=3).map(tuple),
    recent=st.lists(ended_runs(), max_size=5).map(tuple),
    spent_day=st.sampled_from([0, 1, 99_999, 100_000, 10**9]),
    spent_month=st.sampled_from([0, 1, 10**7, 10**9]),
    extensions_day=st.integers(0, 3),
    extensions_month=st.integers(0, 3),
    silent_beats=st.integers(0, 10_000),
    last_act_at=st.none() | instants,
)
asks = st.builds(Ask, st.sampled_from(CAUSES), instants)

senders = st.sampled_from(["@bob:x", "@eve:x", "@ada-bot:x", OPERATOR])
conversations = st.sampled_from(["open", "direct:!a", "room:!b", "room:!c"])
pending_mails = st.builds(
    lambda conversation, oldest, span, who: PendingMail(conversation, 1, oldest, oldest + span, tuple(who)),
    conversations,
    instants,
    st.integers(0, 10_000),
    st.lists(senders, min_size=1, max_size=2, unique=True),
)
wake_facts = st.builds(
    WakeFacts,
    pending=st.lists(pending_mails, max_size=4, unique_by=lambda one: one.conversation).map(tuple),
    standing=standings,
    awaited=st.lists(conversations, max_size=2, unique=True).map(tuple),
    home=st.none() | conversations,
    urgency=st.integers(0, 1000),
    tempo_s=st.none() | st.integers(60, 86_400),
)
waiting_mails = st.builds(
    lambda conversation, room, thread, who, person, count, oldest, span: WaitingMail(
        conversation, room, thread, who, person, count, oldest, oldest + span, f"$of-{oldest}"
    ),
    conversations,
    st.sampled_from(["!a:x", "!b:x"]),
    st.sampled_from(["", "$t", "$u"]),
    senders,
    st.booleans(),
    st.integers(1, 3),
    instants,
    st.integers(0, 10_000),
)
