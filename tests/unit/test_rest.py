"""A mind that rests: no descriptor of its file, and not one commit of anybody else that is missed."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.errors import MindFileError
from mind_body.mind import store
from mind_body.mind.store import Mind, open_mind, open_reader
from tests.builders import insert_heard, make_mind, open_descriptors, pass_hours

IDLE_S = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mind.db"


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Mind]:
    """A mind whose every commit is told of."""
    mind = make_mind(tmp_path)
    assert mind.changed()
    yield mind
    mind.close()


@pytest.fixture
def theirs(ours: Mind) -> Iterator[Mind]:
    mind = open_mind(ours.path)
    yield mind
    mind.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, path: Path) -> Any:
    return lambda: pass_hours(monkeypatch, path.parent)


def count(mind: Mind) -> int:
    with mind.read() as tx:
        return int(tx.execute("SELECT count(*) FROM heard").fetchone()[0])


def commit(mind: Mind) -> None:
    with mind.write() as tx:
        insert_heard(tx)


def test_who_rests_holds_no_descriptor_of_her_mind_and_is_used_as_before(ours: Mind, later: Any, tmp_path: Path) -> None:
    commit(ours)
    assert len(open_descriptors(ours.path)) == 3
    later()
    assert ours.rest(IDLE_S)
    assert ours.resting
    assert open_descriptors(ours.path) == []
    assert count(ours) == 1
    for use in (commit, lambda mind: mind.backup_to(tmp_path / "copy.db")):
        later()
        ours.changed()
        count(ours)
        ours.changed()
        assert ours.rest(IDLE_S)
        use(ours)
        assert not ours.resting
    assert count(ours) == 2
    with ours.read() as tx:
        names = ("journal_mode", "synchronous", "foreign_keys", "cache_size")
        assert [tx.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == ["wal", 2, 1, -store.CACHE_KIB]


def test_who_was_closed_while_she_rested_stays_so(ours: Mind, later: Any) -> None:
    later()
    assert ours.rest(IDLE_S)
    ours.close()
    with pytest.raises(MindFileError, match="closed"):
        count(ours)


def test_nobody_rests_soon_after_a_commit(ours: Mind, theirs: Mind) -> None:
    commit(theirs)
    assert ours.changed()
    assert not ours.rest(IDLE_S)
    assert not ours.rest(0.0), "a tick of the file system's clock may hold two commits"
    assert not ours.resting


def test_who_was_not_told_of_a_commit_does_not_rest(ours: Mind, theirs: Mind, later: Any) -> None:
    commit(theirs)
    later()
    assert not ours.rest(IDLE_S)
    assert ours.changed()
    assert ours.rest(IDLE_S)


def test_a_reader_that_may_not_write_does_not_rest(ours: Mind, later: Any) -> None:
    reader = open_reader(ours.path)
    reader.changed()
    later()
    assert not reader.rest(IDLE_S)
    assert count(reader) == 0
    reader.close()


def test_a_commit_is_told_to_who_rests_until_she_looks_and_then_no_more(ours: Mind, theirs: Mind, later: Any) -> None:
    later()
    assert ours.rest(IDLE_S)
    assert not ours.changed()
    commit(theirs)
    assert ours.changed()
    assert ours.changed(), "she has not looked yet"
    assert ours.resting
    assert count(ours) == 1
    assert not ours.changed()
    commit(theirs)
    assert ours.changed()


def test_a_commit_that_nobody_asked_for_is_told_after_she_was_used(ours: Mind, theirs: Mind, later: Any) -> None:
    later()
    assert ours.rest(IDLE_S)
    commit(theirs)
    commit(ours)
    assert ours.changed()
    assert not ours.changed()


class Slow:
    """A connection before whose end something happens."""

    def __init__(self, mind: Mind, deed: Any) -> None:
        self._db, self._deed = mind._db, deed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def close(self) -> None:
        self._deed()
        self._db.close()


def test_a_commit_between_the_last_look_and_the_end_of_the_connection_is_told(
    ours: Mind, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    later()

    def commit_alone() -> None:
        other = open_mind(ours.path)
        commit(other)
        other.close()

    monkeypatch.setattr(ours, "_connection", Slow(ours, commit_alone))
    assert ours.rest(IDLE_S)
    assert ours.changed()
    assert count(ours) == 1


def test_who_only_reads_rouses_nobody(ours: Mind, later: Any) -> None:
    later()
    assert ours.rest(IDLE_S)
    for _ in range(2):
        other = open_mind(ours.path)
        assert count(other) == 0
        assert not ours.changed()
        other.close()
        assert not ours.changed()


def test_the_end_of_her_own_log_rouses_her_once_at_most(ours: Mind, later: Any) -> None:
    commit(ours)
    for told in (True, False):
        later()
        assert ours.rest(IDLE_S)
        assert not ours.path.with_name("mind.db-wal").exists()
        assert ours.changed() == told
        assert count(ours) == 1
        assert not ours.changed()


def test_a_file_that_was_replaced_or_is_gone_is_news(ours: Mind, later: Any, tmp_path: Path) -> None:
    make_mind(tmp_path / "another").close()
    later()
    assert ours.rest(IDLE_S)
    (tmp_path / "another" / "mind.db").rename(ours.path)
    assert ours.changed()
    assert count(ours) == 0
    ours.changed()
    later()
    assert ours.rest(IDLE_S)
    ours.path.unlink()
    assert ours.changed()
    with pytest.raises(MindFileError, match="does not exist"):
        count(ours)


DEEDS = st.sampled_from(["they commit", "they come and commit", "they come and read", "rest", "ask", "look", "use"])


@given(st.lists(DEEDS, max_size=14))
@settings(max_examples=150, deadline=None)
def test_law_whatever_comes_between_no_commit_is_missed(deeds: list[str]) -> None:
    """Who asks and looks when she is told to has seen everything that was committed before she asked."""
    with TemporaryDirectory(prefix="mind-") as directory:
        ours, theirs = make_mind(Path(directory)), open_mind(Path(directory) / "mind.db")
        ours.changed()
        seen, committed, owes_a_look = 0, 0, False
        for deed in [*deeds, "ask", "look"]:
            match deed:
                case "they commit":
                    commit(theirs)
                    committed += 1
                case "they come and commit" | "they come and read":
                    theirs.close()
                    theirs = open_mind(ours.path)
                    if deed == "they come and commit":
                        commit(theirs)
                        committed += 1
                    count(theirs)
                    theirs.close()
                    theirs = open_mind(ours.path)
                case "rest":
                    with pytest.MonkeyPatch.context() as patch:
                        pass_hours(patch, Path(directory))
                        ours.rest(IDLE_S)
                case "ask":
                    owes_a_look |= ours.changed()
                    assert owes_a_look or seen == committed
                case "look":
                    if owes_a_look:
                        seen, owes_a_look = count(ours), False
                        assert seen == committed
                case _:
                    count(ours)
        ours.close()
        theirs.close()


def test_two_who_rest_come_to_rest(ours: Mind, theirs: Mind, later: Any) -> None:
    """Mouth and heartbeat, after a commit: whoever closes the file last rouses the other once, and neither does it again."""
    theirs.changed()
    commit(ours)
    looks = 0
    for _ in range(5):
        later()
        for mind in (ours, theirs):
            if mind.changed():
                looks += 1
                count(mind)
            else:
                mind.rest(IDLE_S)
    assert ours.resting
    assert theirs.resting
    assert looks <= 3, "of the commit, and one each of the end of the log"
    assert os.listdir(ours.path.parent) == ["mind.db"]  # noqa: PTH208 - names are enough
