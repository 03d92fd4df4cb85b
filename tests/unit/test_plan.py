"""Which session a turn goes into, and what an outcome means for what comes after."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.control.govern import CONVERSATIONS, RUN_CAP
from mind_body.errors import ChildError, ConfigError
from mind_body.mind.records import Pause, Session, TurnState
from mind_body.model.pausing import BACKOFF_MAX_MS, OPERATOR_WAIT_MS, plan_fault, plan_pause
from mind_body.model.session import Failed, Limited, Outcome, Refused, Reply, TurnResult, Unreadable, Usage
from mind_body.persona.outcomes import answered_text
from mind_body.persona.plan import RESERVE, Binding, Continue, Refresh, Resume, SessionFacts, ceiling_tokens, plan_session
from tests.unit.test_prompt import NOW

BINDING = Binding("openai:http://x/v1", "m", "instructions", "schema")
SESSION = Session(
    id="s",
    conversation="open",
    provider=BINDING.provider,
    model=BINDING.model,
    instructions="",
    instructions_digest=BINDING.instructions_digest,
    schema_json="{}",
    schema_digest=BINDING.schema_digest,
    rehydration="",
    cursor="c",
    opened_at=NOW,
    ended_at=None,
    end_reason=None,
    prefix_tokens=10_000,
    ceiling_tokens=0,
    window_tokens=0,
    rehydration_tokens=0,
    last_used_at=NOW,
    last_turn_id="t",
    turns=3,
)
FACTS = SessionFacts(SESSION, TurnState.REPLIED, BINDING, True, True, 200_000, 4_096, 500)


def test_a_session_goes_on_while_what_it_was_opened_under_still_holds() -> None:
    assert plan_session(FACTS) == Continue()
    assert plan_session(replace(FACTS, alive=False)) == Resume()
    assert plan_session(replace(FACTS, session=None)) == Refresh("no session")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"instructions_digest": "other"}, "instructions changed"),
        ({"schema_digest": "other"}, "schema changed"),
        ({"provider": "other"}, "model changed"),
        ({"model": "other"}, "model changed"),
    ],
)
def test_a_session_whose_binding_does_not_match_is_not_used(change: dict[str, str], reason: str) -> None:
    assert plan_session(replace(FACTS, binding=replace(BINDING, **change))) == Refresh(reason)


@pytest.mark.parametrize("state", [TurnState.LOST, TurnState.FAILED, TurnState.LIMITED, TurnState.REFUSED, TurnState.OPENED])
def test_a_transcript_that_may_be_ahead_of_the_record_is_not_resumed(state: TurnState) -> None:
    assert isinstance(plan_session(replace(FACTS, last_turn=state)), Refresh)
    assert plan_session(replace(FACTS, last_turn=state, keeps_transcript=False)) == Continue()


def test_a_session_that_never_completed_a_turn_is_not_resumed() -> None:
    assert plan_session(replace(FACTS, session=replace(SESSION, turns=0))) == Refresh("no turn completed")
    without = replace(FACTS, session=replace(SESSION, cursor=None), alive=False)
    assert plan_session(without) == Refresh("no cursor")
    assert plan_session(replace(without, keeps_transcript=False)) == Resume()


@given(st.integers(0, 400_000), st.integers(2_048, 1_000_000), st.integers(16, 8_000), st.integers(0, 100_000))
def test_what_goes_on_always_fits_the_window_with_room_for_an_answer(prefix: int, window: int, cap: int, incoming: int) -> None:
    facts = replace(FACTS, session=replace(SESSION, prefix_tokens=prefix), window_tokens=window, output_cap=cap, incoming=incoming)
    if isinstance(plan_session(facts), Continue):
        assert prefix + incoming + cap + RESERVE <= window
        assert prefix < ceiling_tokens(window, cap) <= 300_000
    else:
        assert prefix >= ceiling_tokens(window, cap) or prefix + incoming + cap + RESERVE > window


def test_a_limit_sleeps_until_its_reset_and_an_overload_waits_twice_as_long_each_time() -> None:
    assert plan_pause(Limited(NOW + 9_000, "5 hours"), (), NOW) == Pause("limited", NOW + 9_000, "5 hours", 1, NOW)
    pauses: list[Pause] = []
    waits = []
    for _ in range(12):
        pause = plan_pause(Failed("overloaded", NOW + 1, "529"), pauses, NOW)
        assert pause is not None
        pauses = [pause]
        waits.append(pause.until - NOW)
    assert waits[:4] == [5_000, 10_000, 20_000, 40_000]
    assert waits[-1] == BACKOFF_MAX_MS
    told = plan_pause(Failed("overloaded", NOW + 77_000, "529"), (), NOW)
    assert told is not None
    assert told.until == NOW + 77_000


@pytest.mark.parametrize("kind", ["authentication", "payment", "fault"])
def test_what_only_the_operator_can_mend_is_tried_once_an_hour(kind: str) -> None:
    pause = plan_pause(Failed(kind, None, "no"), (), NOW)  # type: ignore[arg-type]
    assert pause is not None
    assert (pause.cause, pause.until) == (kind, NOW + OPERATOR_WAIT_MS)
    waits: list[int] = []
    pauses: tuple[Pause, ...] = ()
    for _ in range(8):
        pause = plan_pause(Failed(kind, None, "no"), pauses, NOW, "self-")  # type: ignore[arg-type]
        assert pause is not None
        pauses = (pause,)
        waits.append((pause.until - NOW) // OPERATOR_WAIT_MS)
    assert waits == [1, 2, 4, 8, 16, 24, 24, 24], "work is tried less and less often"


def test_a_call_that_no_run_may_make_waits_for_the_operator_and_one_for_which_a_run_had_no_room_left_does_not() -> None:
    pauses: tuple[Pause, ...] = ()
    for strikes in (1, 2, 3):
        pause = plan_pause(Failed("budget", None, "too dear"), pauses, NOW, conversation="room:!a")
        assert pause == Pause(f"{RUN_CAP}:room:!a", NOW + OPERATOR_WAIT_MS, "too dear", strikes, since=NOW)
        pauses = (pause,)
    assert plan_pause(Failed("budget", NOW, "spent"), pauses, NOW) == Pause("budget", NOW + 5_000, "spent", 1, since=NOW)


def test_a_half_that_cannot_begin_pauses_where_an_operator_must_act_and_else_only_backs_off() -> None:
    pause = plan_fault(ConfigError("no such file"), (), NOW, "self-")
    assert pause == Pause("self-fault", NOW + OPERATOR_WAIT_MS, "no such file", 1, since=NOW)
    assert plan_fault(ChildError("it ended"), (), NOW) is None


@pytest.mark.parametrize("outcome", [Reply("{}"), Unreadable("prose", ""), Refused("no"), Failed("held", None, "brake")])
def test_an_answer_or_a_hold_is_no_pause(outcome: Outcome) -> None:
    assert plan_pause(outcome, (), NOW) is None


def test_a_cap_of_spending_is_a_pause_until_the_lease_opens_it_again_however_often_it_was_met() -> None:
    pauses: list[Pause] = []
    for strikes in range(1, 12):
        pause = plan_pause(Failed("spend", NOW + 20_000, "the day's cap"), pauses, NOW)
        assert pause == Pause("spend", NOW + 20_000, "the day's cap", strikes, since=NOW)
        pauses = [pause]
    unknown = plan_pause(Failed("spend", None, "the day's cap"), (), NOW)
    assert unknown is not None
    assert unknown.until == NOW + OPERATOR_WAIT_MS
    own = Failed("spend", NOW + 20_000, f"of the $1.00 that {CONVERSATIONS} in a day")
    assert plan_pause(own, (), NOW, "self-", "room:!a") == Pause("self-spend:room:!a", NOW + 20_000, own.reason, 1, since=NOW)
    past = plan_pause(Failed("spend", NOW - 1, "the day's cap"), (), NOW)
    assert past is not None
    assert past.until > NOW, "a clock ahead of the lease's is no reason to ask it without a pause"


def test_what_a_session_goes_on_with_is_what_came_back_and_nothing_where_nothing_came() -> None:
    def result(outcome: Outcome, *blocks: dict[str, str]) -> TurnResult:
        return TurnResult(outcome, Usage(), Usage(), 0, None, 1, received=blocks)

    assert answered_text(result(Reply("{}"))) == "{}"
    assert answered_text(result(Unreadable("length", "cut o"))) == "cut o"
    assert answered_text(result(Refused("policy"), {"role": "assistant", "content": "I cannot"})) == "I cannot"
    assert answered_text(result(Refused("too long"))) is None
    assert answered_text(result(Failed("network", None, ""))) is None
