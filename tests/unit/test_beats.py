"""Scheduled wakes over real minds: who speaks unprompted, when, how often, and what restarts, sleep and clocks change of it."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.heartbeat.tempo import next_beat
from mind_body.mind.places import admit_turn_places
from mind_body.mind.records import Standing
from mind_body.settings import HostConfig
from tests.builders import NOW, hold, insert_run, insert_turn, release
from tests.examples import share
from tests.heart_stage import BEATS, HOME, Stage

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BEAT = 600_000
CADENCE = 4 * HOUR


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, "ada", "eve", "zoe")
    for name in made.minds:
        made.hear(name, NOW - CADENCE, standing=Standing.CONTEXT)
    yield made
    made.close()


async def test_one_mind_speaks_on_a_beat_in_her_home_room_and_the_others_on_the_next_ones(stage: Stage) -> None:
    due = await stage.look(NOW)
    (first,) = stage.awake()
    run = stage.live(first)
    assert run is not None
    assert (run.cause, run.conversations) == ("beat", (f"room:{HOME}",))
    assert due is not None
    stage.answered(first, NOW)
    await stage.look(NOW + BEAT - 1)
    assert stage.awake() == []
    await stage.look(NOW + BEAT)
    (second,) = stage.awake()
    stage.answered(second, NOW + BEAT)
    await stage.look(NOW + 2 * BEAT)
    assert {first, second, *stage.awake()} == set(stage.minds)


async def test_it_says_itself_when_the_next_beat_is(stage: Stage) -> None:
    await stage.look(NOW)
    stage.answered(stage.awake()[0], NOW)
    assert await stage.look(NOW + 1) == NOW + BEAT


async def test_ten_restarts_within_an_hour_change_nothing(tmp_path: Path) -> None:
    lives = []
    for every in (None, 6):
        stage = Stage(tmp_path / str(every), "ada", "eve", "zoe")
        for name in stage.minds:
            release(stage.home, name, base_cooldown_s=600)
            stage.hear(name, NOW - 7 * MINUTE, standing=Standing.CONTEXT)
        for minute in range(6 * 60):
            now = NOW + minute * MINUTE
            if every and minute % every == 0:
                stage.restart()
            await stage.look(now)
            for name in stage.awake():
                stage.answered(name, now + 1)
        lives.append({name: stage.beats(name) for name in stage.minds})
        stage.close()
    assert lives[0] == lives[1]
    assert sum(map(len, lives[0].values())) > 9


async def test_a_machine_that_slept_catches_up_with_one_beat(stage: Stage) -> None:
    await stage.look(NOW)
    stage.answered(stage.awake()[0], NOW)
    woke = NOW + 5 * DAY
    for second in range(0, 600, 20):
        await stage.look(woke + second * 1000)
        for name in stage.awake():
            stage.answered(name, woke + second * 1000)
    assert sum(len(stage.beats(name)) for name in stage.minds) == 2
    await stage.look(woke + BEAT)
    assert len(stage.awake()) == 1


async def test_who_wants_to_speak_most_goes_first_and_votes_set_the_pace(stage: Stage) -> None:
    stage.feel("zoe", urgency=1000, tempo_s=1200)
    stage.feel("eve", tempo_s=60)
    stage.feel("ada", tempo_s=1200)
    await stage.look(NOW)
    assert stage.awake() == ["zoe"]
    stage.answered("zoe", NOW)
    await stage.look(NOW + 1_199_000)
    assert stage.awake() == [], "two of three votes are for twenty minutes"
    await stage.look(NOW + 1_200_000)
    assert len(stage.awake()) == 1


@pytest.mark.parametrize("deed", ["held", "mail"])
async def test_who_cannot_speak_any_more_when_she_is_picked_costs_nobody_a_beat(stage: Stage, deed: str) -> None:
    stage.feel("zoe", urgency=1000)
    await stage.look(NOW)
    stage.answered("zoe", NOW)
    stage.feel("ada", urgency=1000)
    await stage.look(NOW + BEAT - 1)
    if deed == "held":
        hold(stage.home, "ada")
    else:
        stage.hear("ada", NOW + BEAT - 1)
    await stage.look(NOW + BEAT)
    assert "eve" in stage.awake()
    assert stage.beats("ada") == []


async def test_mail_is_answered_before_a_scheduled_wake_and_starts_her_wait_anew(stage: Stage) -> None:
    stage.feel("ada", urgency=1000)
    stage.hear("ada", NOW - 10_000)
    await stage.look(NOW)
    run = stage.live("ada")
    assert run is not None
    assert run.cause == "mention"
    stage.answered("ada", NOW)
    await stage.look(NOW + BEAT)
    assert stage.live("ada") is None


async def test_who_speaks_during_a_scheduled_turn_is_answered_next_and_not_beside_it(stage: Stage) -> None:
    await stage.look(NOW)
    (name,) = stage.awake()
    scheduled = stage.live(name)
    stage.hear(name, NOW + 1000)
    await stage.look(NOW + 10_000)
    assert stage.live(name) == scheduled
    assert scheduled is not None
    stage.execute(name, "UPDATE run SET turns = 1 WHERE id = ?", (scheduled.id,))
    stage.end(name, "done", NOW + 10_000)
    await stage.look(NOW + 10_001)
    after = stage.live(name)
    assert after is not None
    assert after.cause == "mention"


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        ("[persona]\nbeat = true\n", "without a home_room"),
        ('[persona]\nbeat = true\nhome_room = "!other:example.org"\n', "not in her home room"),
        (f'[persona]\nhome_room = "{HOME}"\n', "nobody spoke"),
    ],
)
async def test_without_leave_or_a_room_of_her_own_she_never_speaks_unprompted(tmp_path: Path, toml: str, reason: str) -> None:
    stage = Stage(tmp_path, "ada", toml=toml)
    stage.hear("ada", NOW, standing=Standing.CONTEXT)
    for day in range(10):
        assert await stage.look(NOW + day * DAY) is None, reason
    assert stage.beats("ada") == []
    stage.close()


@pytest.mark.parametrize("dial", [{}, {"base_cooldown_s": 1, "heat": 2.0}, {"base_cooldown_s": 604_800, "heat": 0.05}])
async def test_two_weeks_without_a_person_hold_at_most_24_scheduled_wakes_and_one_word_is_answered_as_ever(
    tmp_path: Path, dial: dict[str, float]
) -> None:
    stage = Stage(tmp_path, "ada")
    release(stage.home, "ada", **dial)
    stage.hear("ada", NOW, standing=Standing.CONTEXT)
    await stage.live_through(NOW, NOW + 14 * DAY)
    assert len(stage.beats("ada")) <= 24
    assert stage.beats("ada") or dial.get("heat") == 0.05
    end = NOW + 14 * DAY
    stage.hear("ada", end)
    assert await stage.look(end) == end + 1500
    await stage.look(end + 1500)
    run = stage.live("ada")
    assert run is not None
    assert run.cause == "mention"
    stage.answered("ada", end + 1500)
    if dial.get("base_cooldown_s") == 1:
        await stage.live_through(end + 1501, end + HOUR)
        assert sum(at > end for at in stage.beats("ada")) >= 3, "her cadence is her dial's again"
    stage.close()


async def test_a_clock_that_steps_back_holds_no_beat_up_for_longer_than_twice_its_spacing(stage: Stage) -> None:
    await stage.look(NOW)
    stage.answered(stage.awake()[0], NOW)
    before = NOW - 10 * DAY
    looks = [before + minute * MINUTE for minute in range(2 * CADENCE // MINUTE + 1)]
    for now in looks:
        await stage.look(now)
        if stage.awake():
            return
    pytest.fail("nobody spoke")


@given(st.lists(st.integers(-(10**9), 10**9), max_size=5), st.integers(60, 86_400))
def test_the_next_beat_is_a_spacing_after_the_last_and_never_further_than_twice_that(lasts: list[int], beat_s: int) -> None:
    beat_ms = beat_s * 1000
    at = next_beat([None, *(NOW + last for last in lasts)], beat_s, NOW)
    assert at < NOW + 2 * beat_ms
    assert all(at >= NOW + last + beat_ms for last in lasts if last <= 0) or not lasts
    if all(last <= -beat_ms for last in lasts):
        assert at <= NOW


async def test_a_beat_is_lost_to_no_quiet_hours_and_comes_when_they_end(tmp_path: Path) -> None:
    zone = HostConfig(time_zone="Europe/Berlin")
    stage = Stage(tmp_path, "ada", toml=BEATS + 'quiet_hours = ["22:00-07:00"]\n', host=zone)
    evening = 1_800_046_800_000  # 2027-01-15, 22:00 in Berlin
    stage.hear("ada", evening - CADENCE - MINUTE, standing=Standing.CONTEXT)
    await stage.look(evening - 1)
    assert stage.awake() == ["ada"]
    stage.execute("ada", "UPDATE run SET turns = 1")
    stage.end("ada", "done", evening - 1)
    stage.execute("ada", "DELETE FROM run")
    for minute in range(9 * 60):
        if minute % 60 == 0:
            stage.restart()
        assert await stage.look(evening + minute * MINUTE) == evening + 9 * HOUR
        assert stage.awake() == [], f"{minute} minutes after ten in the evening"
    await stage.look(evening + 9 * HOUR)
    assert stage.awake() == ["ada"]
    stage.close()


@settings(max_examples=share(0.15), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2 * BEAT), st.sampled_from(["look", "restart", "word", "hold"])), max_size=40))
async def test_whatever_happens_beats_are_a_tempo_apart_and_each_wakes_one(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[int, str]]
) -> None:
    stage = Stage(tmp_path_factory.mktemp("stage"), "ada", "eve")
    for name in stage.minds:
        release(stage.home, name, base_cooldown_s=1)
        stage.hear(name, NOW - DAY, standing=Standing.CONTEXT)
    now = NOW
    for ms, deed in deeds:
        now += ms
        if deed == "restart":
            stage.restart()
        elif deed == "word":
            stage.hear("ada", now)
        elif deed == "hold":
            hold(stage.home, "eve") if now % 2 else release(stage.home, "eve", base_cooldown_s=1)
        await stage.look(now)
        for name in stage.awake():
            stage.answered(name, now)
    beats = sorted(at for name in stage.minds for at in stage.beats(name))
    assert all(later - earlier >= BEAT for earlier, later in itertools.pairwise(beats))
    stage.close()


@pytest.mark.parametrize("fault", ["encrypted", "spent", "capped"])
async def test_no_wake_is_opened_for_nothing_and_it_takes_nobody_elses_beat(stage: Stage, fault: str) -> None:
    await stage.look(NOW - CADENCE)
    if fault == "encrypted":
        stage.execute("ada", "UPDATE room SET encrypted = 1 WHERE room_id = ?", (HOME,))
    elif fault == "capped":
        stage.pause("ada", f"spend:room:{HOME}", NOW + 30 * DAY, since=NOW)
    with stage.minds["ada"].write() as tx:
        run_id = insert_run(tx, opened_at=NOW - CADENCE, ended_at=NOW - CADENCE)
        for number in range(6 if fault == "spent" else 0):
            insert_turn(tx, f"t{number}", run_id=run_id, after_seq=1)
            admit_turn_places(tx, f"t{number}", [(HOME, "")])
    await stage.look(NOW)
    for beat in range(6):
        for name in stage.awake():
            stage.answered(name, NOW + beat * BEAT)
        await stage.look(NOW + (beat + 1) * BEAT)
    assert stage.beats("ada") == []
    assert stage.beats("eve")
    assert stage.beats("zoe")
