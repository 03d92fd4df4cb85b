"""Who may ask the lease, and how it serves them: real sockets, real processes, a real organ."""

import array
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import structlog
import trio
from hypothesis import given
from hypothesis import strategies as st

from mind_body.cli.spend_checks import check_purse
from mind_body.config import environment
from mind_body.errors import StorageError
from mind_body.home import Home
from mind_body.host.handover import Caller, Handed, ask_line, has_hung_up, open_stream_socket, receive_line, send_line
from mind_body.host.liveness import take_hold
from mind_body.host.peers import (
    Peer,
    forget_ended_peers,
    forget_peer,
    parse_unit,
    read_peer,
    register_peer,
)
from mind_body.host.secrets import write_secret
from mind_body.lease import serve
from mind_body.lease.desk import Desk
from mind_body.lease.ledger_read import read_calls, read_difference
from mind_body.lease.serve import Server
from mind_body.log import Journal
from mind_body.model.lease_lines import (
    LINE_MAX,
    Answer,
    Borrow,
    Granted,
    Lent,
    Line,
    Noted,
    Refused,
    Reserve,
    Settle,
    parse_answer,
    render_line,
)
from tests.builders import make_home

TOKEN = "sk-the-canary-0123456789"
ADA = Peer("persona", "ada")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def home() -> Iterator[Home]:
    """Short enough for a socket's path. Ada has a key."""
    with TemporaryDirectory(prefix="mind-") as directory:
        root = Path(directory) / "h"
        made = make_home(root, "ada", "eve", toml='[model]\nprovider = "claude"\ncredential = "api-key"')
        write_secret(made.model_key("ada"), TOKEN)
        yield Home(root, root, root / "state", root / "run")


# Units


@pytest.mark.parametrize(
    ("path", "half"),
    [
        ("/system.slice/system-mind\\x2dpersona.slice/mind-persona@ada.service", ADA),
        ("/system.slice/mind-persona@ada.service", ADA),
        ("/system.slice/mind-self@ada-2.service", Peer("self", "ada-2")),
        ("/mind.slice/mind-mind.slice/mind-self@ada.service/payload", Peer("self", "ada")),
        ("/system.slice/mind-persona@ada.service.d", None),
        ("/system.slice/xmind-persona@ada.service", None),
        ("/system.slice/mind-persona@Ada.service", None),
        ("/system.slice/mind-persona@.service", None),
        ("/system.slice/mind-mouth.service", None),
        ("/system.slice/mind-mouth@ada.service", None),
        # Below these anybody may name a cgroup as he likes.
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/mind-persona@ada.service", None),
        ("/user.slice/user-1000.slice/session-1.scope/mind-persona@ada.service", None),
        ("/system.slice/docker-0123.scope/mind-persona@ada.service", None),
        ("/../mind-persona@ada.service", None),
        ("/", None),
        ("", None),
    ],
)
def test_a_unit_of_the_systems_own_manager_says_whose_half_it_is(path: str, half: Peer | None) -> None:
    assert parse_unit(f"0::{path}\n") == half


def test_a_host_with_old_hierarchies_is_read_by_the_one_of_systemds() -> None:
    unit = "/system.slice/mind-persona@ada.service"
    assert parse_unit(f"12:cpu,cpuacct:/\n3:name=systemd:{unit}\n") == ADA
    assert parse_unit(f"12:cpu,cpuacct:{unit}\n") is None


@given(st.text())
def test_no_text_of_a_cgroup_breaks_it(text: str) -> None:
    assert parse_unit(text) is None


# Registered processes


def start_sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)


def test_a_registered_process_is_a_half_until_it_is_forgotten_or_ends(home: Home) -> None:
    one, other = start_sleeper(), start_sleeper()
    for child, organ in ((one, "persona"), (other, "self")):
        register_peer(home, child.pid, organ, "ada")
    assert (read_peer(home, one.pid), read_peer(home, other.pid)) == (ADA, Peer("self", "ada"))
    forget_peer(home, one.pid)
    forget_peer(home, one.pid)
    assert read_peer(home, one.pid) is None
    other.kill()
    other.communicate()
    assert read_peer(home, other.pid) is None
    one.kill()
    one.communicate()
    with pytest.raises(StorageError, match="is gone"):
        register_peer(home, one.pid, "persona", "ada")
    assert [path.name for path in home.peers_dir.iterdir()] == [str(other.pid)]
    forget_ended_peers(home)
    assert not list(home.peers_dir.iterdir())


def test_a_number_that_is_used_again_is_nobody(home: Home) -> None:
    register_peer(home, os.getpid(), "persona", "ada")
    child = start_sleeper()
    (home.peers_dir / str(os.getpid())).rename(home.peers_dir / str(child.pid))
    assert read_peer(home, child.pid) is None
    child.kill()
    child.communicate()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"organ": "persona"}', '{"organ": 1, "mind": 2, "started": 3}', "\x00" * 9000, '{"a": ' * 2000]
)
def test_a_register_that_cannot_be_read_names_nobody(home: Home, text: str) -> None:
    home.peers_dir.mkdir(parents=True)
    (home.peers_dir / str(os.getpid())).write_text(text)
    assert read_peer(home, os.getpid()) is None
    forget_ended_peers(home)


def test_a_register_that_others_may_write_or_that_is_a_link_names_nobody(home: Home) -> None:
    register_peer(home, os.getpid(), "persona", "ada")
    file = home.peers_dir / str(os.getpid())
    file.chmod(0o666)
    assert read_peer(home, os.getpid()) is None
    file.chmod(0o600)
    assert read_peer(home, os.getpid()) == ADA
    file.rename(home.peers_dir / "aside")
    file.symlink_to("aside")
    assert read_peer(home, os.getpid()) is None


def test_a_process_may_call_itself_anything(home: Home) -> None:
    comm = Path(f"/proc/{os.getpid()}/comm")
    before = comm.read_bytes()
    try:
        comm.write_bytes(b"\xff) R 1")
        register_peer(home, os.getpid(), "persona", "ada")
        assert read_peer(home, os.getpid()) == Peer("persona", "ada")
    finally:
        comm.write_bytes(before)


def test_a_daemon_is_no_half(home: Home) -> None:
    register_peer(home, os.getpid(), "mouth", "ada")
    assert read_peer(home, os.getpid()) is None


# Lines


@asynccontextmanager
async def open_pair() -> AsyncIterator[tuple[trio.SocketStream, trio.SocketStream]]:
    ends = [trio.SocketStream(trio.socket.from_stdlib_socket(end)) for end in socket.socketpair(socket.AF_UNIX)]
    try:
        yield ends[0], ends[1]
    finally:
        for end in ends:
            await end.aclose()


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_line_arrives_whole_however_it_is_cut(size: int) -> None:
    async with open_pair() as (ours, theirs), trio.open_nursery() as nursery:

        async def dribble() -> None:
            text = "a question, ünd another\nand more".encode()
            for start in range(0, len(text), size):
                await theirs.send_all(text[start : start + size])
                await trio.lowlevel.checkpoint()

        nursery.start_soon(dribble)
        assert await receive_line(ours, 100) == Handed("a question, ünd another".encode())


@pytest.mark.parametrize(
    ("sent", "said"), [(b"half", "before the end of its line"), (b"", "said nothing"), (b"x" * 101 + b"\n", "more than 100 bytes")]
)
async def test_a_line_that_comes_to_nothing_is_a_sentence(sent: bytes, said: str) -> None:
    async with open_pair() as (ours, theirs):
        await theirs.send_all(sent)
        await theirs.send_eof()
        found = await receive_line(ours, 100)
        assert isinstance(found, str)
        assert said in found


async def test_a_line_without_end_is_left_at_its_cap() -> None:
    async with open_pair() as (ours, theirs), trio.open_nursery() as nursery:

        async def flood() -> None:
            while True:
                await theirs.send_all(b"x" * 10_000)

        nursery.start_soon(flood)
        with trio.fail_after(5):
            assert "more than 100 bytes" in str(await receive_line(ours, 100))
        nursery.cancel_scope.cancel()


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_one_descriptor_is_kept_and_every_other_is_closed() -> None:
    async with open_pair() as (ours, theirs):
        before = count_descriptors()
        file = os.open("/dev/null", os.O_RDONLY)
        for text in (b"first ", b"second", b"\n"):
            await theirs.socket.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file] * 3))])
        found = await receive_line(ours, 100)
        assert isinstance(found, Handed)
        assert found.descriptor is not None
        assert not os.get_inheritable(found.descriptor)
        os.close(found.descriptor)
        await theirs.socket.sendmsg([b"half"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
        await theirs.send_eof()
        assert isinstance(await receive_line(ours, 100), str)
        os.close(file)
        assert count_descriptors() == before


async def test_who_has_gone_is_a_sentence_for_who_sends_to_him() -> None:
    async with open_pair() as (ours, theirs):
        await theirs.aclose()
        assert "the other end is gone" in (await send_line(ours, b"x\n") or "")
        assert isinstance(await receive_line(ours, 100), str)


async def test_where_nobody_listens_nobody_answers(home: Home) -> None:
    assert "nobody answers" in str(await ask_line(home.lease_socket, b"\n", 100))
    open_stream_socket(home.lease_socket).socket.close()
    assert "nobody answers" in str(await ask_line(home.lease_socket, b"\n", 100))


# The organ's door


class Door:
    """A server in this process, and what it wrote into the journal."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.lines: list[Any] = []

    def told(self, kind: str) -> list[str]:
        return [line["event"] for line in self.lines if line["kind"] == kind]

    async def ask(self, question: Line) -> tuple[Answer | str, int | None]:
        found = await ask_line(self.home.lease_socket, render_line(question), LINE_MAX)
        return (found, None) if isinstance(found, str) else (parse_answer(found.line), found.descriptor)

    async def connect(self) -> trio.SocketStream:
        return await trio.open_unix_socket(str(self.home.lease_socket))


@pytest.fixture
async def door(home: Home) -> AsyncIterator[Door]:
    made, desk = Door(home), Desk(home, Journal("lease"))
    with structlog.testing.capture_logs() as made.lines:
        async with trio.open_nursery() as nursery:
            listener = open_stream_socket(home.lease_socket)
            nursery.start_soon(Server(home, desk, Journal("lease")).serve, listener)
            yield made
            nursery.cancel_scope.cancel()
    desk.close()


RESERVE = Reserve(call="c1", run="run-1", conversation="open", model="m", ceiling_micro_usd=100)
ASKS = """
import json, os, socket, sys
path, line, user = sys.argv[1:]
if user:
    os.setgroups([])
    os.setuid(int(user))
asker = socket.socket(socket.AF_UNIX)
asker.connect(path)
try:
    asker.sendall(line.encode() + b"\\n")
except BrokenPipeError:
    pass  # it was answered before it asked
answer, beside, _, _ = asker.recvmsg(65536, socket.CMSG_SPACE(4))
print(json.dumps([answer.decode(), len(beside)]))
"""


async def ask_from_a_process(home: Home, question: Line, user: str = "", register: Peer | None = None) -> tuple[Answer | str, int]:
    """What another process is answered, and how many descriptors come with it."""
    line = render_line(question).decode().strip()
    gate = "import sys; sys.stdin.readline()" + ASKS
    with subprocess.Popen(
        [sys.executable, "-S", "-c", gate, str(home.lease_socket), line, user], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if register is not None:
            register_peer(home, child.pid, register.organ, register.mind)
        child.stdin.write(b"go\n")
        child.stdin.close()
        answer, descriptors = json.loads(await trio.to_thread.run_sync(child.stdout.read))
    return parse_answer(answer), descriptors


async def test_a_registered_half_is_lent_its_key_and_nobody_else_is(door: Door) -> None:
    answer, descriptors = await ask_from_a_process(door.home, Borrow(), register=ADA)
    assert (answer, descriptors) == (Lent(kind="api-key"), 1)
    answer, descriptors = await ask_from_a_process(door.home, Borrow())
    assert isinstance(answer, Refused)
    assert (answer.kind, descriptors) == ("peer", 0)
    assert "which nobody registered" in answer.reason
    assert len(door.told("peer.refused")) == 1


async def test_the_doctor_only_looks_whether_it_answers_and_is_no_cause_for_a_warning(door: Door) -> None:
    hold = take_hold(door.home.lock_file("lease"), "l")
    assert hold is not None
    for _ in range(2):
        lease, _ = await check_purse(door.home)
        assert lease.ok, lease
    hold.release()
    with trio.fail_after(5):
        while len(door.told("peer.looked")) < 2:
            await trio.sleep(0.01)
    assert {line["log_level"] for line in door.lines} == {"debug"}
    await ask_from_a_process(door.home, Borrow())
    assert len(door.told("peer.refused")) == 1, "who asks is told of, however lately somebody looked"


async def test_a_childs_parent_being_a_half_does_not_make_it_one(door: Door) -> None:
    register_peer(door.home, os.getpid(), "persona", "ada")
    assert (await door.ask(RESERVE))[0] == Granted()
    answer, _ = await ask_from_a_process(door.home, RESERVE)
    assert isinstance(answer, Refused)
    assert answer.kind == "peer"


@needs_root
async def test_another_user_is_refused_also_where_its_process_is_registered(door: Door) -> None:
    place = door.home.root
    assert place is not None
    for directory in (place.parent, place, door.home.run):
        directory.chmod(0o755)
    door.home.lease_socket.chmod(0o666)
    answer, descriptors = await ask_from_a_process(door.home, Borrow(), user="65534", register=ADA)
    assert isinstance(answer, Refused)
    assert (answer.kind, descriptors) == ("peer", 0)
    assert "user 65534, who is not the owner" in answer.reason
    assert TOKEN not in str(door.lines)


@needs_root
async def test_the_owner_of_the_home_is_not_refused_for_his_user(door: Door) -> None:
    place = door.home.root
    assert place is not None
    for directory in (place.parent, place, door.home.run):
        directory.chmod(0o755)
    os.chown(place, 65534, -1)
    door.home.lease_socket.chmod(0o666)
    answer, _ = await ask_from_a_process(door.home, Borrow(), user="65534", register=ADA)
    assert answer == Lent(kind="api-key")


async def test_under_systemd_a_process_of_no_unit_is_refused(door: Door) -> None:
    register_peer(door.home, os.getpid(), "persona", "ada")
    system = Home(None, door.home.etc, door.home.state, door.home.run)
    listener = open_stream_socket(door.home.run / "other.stream")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(system, Desk(system, Journal("lease")), Journal("lease")).serve, listener)
        found = await ask_line(door.home.run / "other.stream", render_line(Borrow()), LINE_MAX)
        nursery.cancel_scope.cancel()
    assert isinstance(found, Handed)
    assert "which is in no unit of a Mind" in found.line.decode()


async def test_silent_and_slow_peers_hold_up_nobody_and_are_sent_away(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEADLINE_S", "EARLY_S"):
        monkeypatch.setattr(serve, name, 0.3)
    register_peer(door.home, os.getpid(), "persona", "ada")
    silent = [await door.connect() for _ in range(20)]
    await silent[0].send_all(b'{"ask": ')
    began = trio.current_time()
    assert (await door.ask(RESERVE))[0] == Granted()
    assert trio.current_time() - began < 0.2
    with trio.fail_after(5):
        for stream in silent:
            assert await stream.receive_some(10) == b""
            await stream.aclose()
    (told,) = door.told("peer.refused")
    assert "it took more than 0.3 s" in told, "of who began to ask; who has asked nothing is no cause for complaint"


async def test_a_half_may_come_early_and_is_not_told_of_where_it_goes_or_is_sent_away_without_a_question(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_peer(door.home, os.getpid(), "persona", "ada")
    caller = Caller(door.home.lease_socket)

    async def ask() -> Answer:
        found = await caller.ask(render_line(RESERVE), LINE_MAX)
        assert isinstance(found, Handed), found
        answer = parse_answer(found.line)
        assert not isinstance(answer, str), answer
        return answer

    with trio.fail_after(5):
        await caller.come_early()
        assert await ask() == Granted()
        await caller.come_early()
        caller.leave()
        monkeypatch.setattr(serve, "EARLY_S", 0.05)
        await caller.come_early()
        early = caller._early
        assert early is not None
        while not has_hung_up(early):
            await trio.sleep(0.01)
        assert await ask() == Granted(), "who was sent away comes again"
    assert not door.told("peer.refused")


@pytest.mark.parametrize(
    "sent",
    [
        b'{"ask": "borrow"',
        b"\xff\xfe\n",
        b"no question\n",
        b'{"ask": "borrow", "mind": "eve"}\n',
        b'{"ask": "give"}\n',
        b"[]\n",
        b"\n",
        b"x" * (LINE_MAX + 1),
        b'{"ask": "reserve", "call": "c", "run": "r", "conversation": "o", "model": "m", "ceiling_micro_usd": -1}\n',
        b'{"ask": "settle", "call": "c", "cost_micro_usd": ' + b"9" * 5000 + b"}\n",
        b"[" * 60_000 + b"\n",
    ],
)
async def test_nonsense_is_a_closed_connection_and_one_line_in_the_journal(door: Door, sent: bytes) -> None:
    register_peer(door.home, os.getpid(), "persona", "ada")
    for _ in range(3):
        async with await door.connect() as stream:
            await stream.send_all(sent)
            if b"\n" not in sent and len(sent) <= LINE_MAX:
                await stream.send_eof()
            with trio.fail_after(5):
                with contextlib.suppress(trio.BrokenResourceError):  # closed with our line unread
                    assert await stream.receive_some(1000) == b""
    assert len(door.told("peer.refused")) == 1
    assert (await door.ask(RESERVE))[0] == Granted()


async def test_many_ask_at_once_and_each_is_answered(door: Door) -> None:
    register_peer(door.home, os.getpid(), "persona", "ada")
    answers: list[Answer | str] = []

    async def ask(number: int) -> None:
        question = Reserve(call=f"c{number}", run="run-1", conversation="open", model="m", ceiling_micro_usd=100_000)
        answers.append((await door.ask(question))[0])

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(ask, number)
    assert sum(answer == Granted() for answer in answers) == 10, "a run may cost a dollar"
    assert sum(isinstance(answer, Refused) and answer.kind == "budget" for answer in answers) == 40
    assert read_difference(door.home.ledger) == 0


async def test_one_process_has_so_many_connections_and_another_is_served_beside_it(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "AT_ONCE", 4)
    register_peer(door.home, os.getpid(), "persona", "ada")
    held = [await door.connect() for _ in range(4)]
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert isinstance((await door.ask(RESERVE))[0], str), "it is sent away without an answer"
    assert len(door.told("peer.refused")) == 1
    assert (await ask_from_a_process(door.home, RESERVE, register=ADA))[0] == Granted()
    for stream in held:
        await stream.aclose()
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert (await door.ask(RESERVE))[0] == Granted()


async def test_nothing_is_reserved_for_who_has_hung_up(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gave up waiting says that he will not make the call; that may be heard before his question is."""
    register_peer(door.home, os.getpid(), "persona", "ada")
    heard = trio.Event()

    async def slowly(stream: trio.SocketStream, cap: int) -> Handed | str:
        await heard.wait()
        return await receive_line(stream, cap)

    monkeypatch.setattr(serve, "receive_line", slowly)
    gone, stays = await door.connect(), await door.connect()
    await gone.send_all(render_line(RESERVE))
    await gone.aclose()
    await stays.send_all(render_line(Settle(call="c1", cost_micro_usd=0)))
    heard.set()
    assert b"noted" in await stays.receive_some(1000)
    await stays.aclose()
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert (await door.ask(Settle(call="c1", cost_micro_usd=0)))[0] == Noted()
    assert read_calls(door.home.ledger) == []


async def test_a_lent_descriptor_is_not_left_open_at_the_lease(door: Door) -> None:
    register_peer(door.home, os.getpid(), "persona", "ada")
    await door.ask(RESERVE)
    await trio.testing.wait_all_tasks_blocked(0.01)
    before = count_descriptors()
    for _ in range(10):
        answer, descriptor = await door.ask(Borrow())
        assert answer == Lent(kind="api-key")
        assert descriptor is not None
        os.close(descriptor)
        async with await door.connect() as stream:  # who does not wait for it
            await stream.send_all(render_line(Borrow()))
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert count_descriptors() == before


# The whole organ


class Organ:
    """`mind organ lease` in a process of its own."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.child: subprocess.Popen[str] | None = None

    async def start(self, **env: str) -> None:
        argv = [sys.executable, "-m", "mind_body", "--home", str(self.home.root), "organ", "lease"]
        self.child = subprocess.Popen(argv, env={**environment, **env}, stderr=subprocess.PIPE, text=True)
        with trio.fail_after(20):
            while not await self._answers():
                assert self.child.poll() is None, "it ended"
                await trio.sleep(0.02)

    async def _answers(self) -> bool:
        try:
            await (await trio.open_unix_socket(str(self.home.lease_socket))).aclose()
        except OSError:
            return False
        return True

    async def ask(self, question: Line) -> Answer | str:
        with trio.fail_after(10):
            found = await ask_line(self.home.lease_socket, render_line(question), LINE_MAX)
        if isinstance(found, Handed) and found.descriptor is not None:
            os.close(found.descriptor)
        return found if isinstance(found, str) else parse_answer(found.line)

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it wrote."""
        assert self.child is not None
        self.child.send_signal(signal.SIGTERM)
        _, words = self.child.communicate(timeout=10)
        return self.child.returncode, words

    def reap(self) -> str:
        """It has died by itself."""
        assert self.child is not None
        _, words = self.child.communicate(timeout=10)
        assert self.child.returncode == -signal.SIGKILL
        return words


@pytest.fixture
def organ(home: Home) -> Iterator[Organ]:
    made = Organ(home)
    register_peer(home, os.getpid(), "persona", "ada")
    yield made
    if made.child is not None and made.child.poll() is None:
        made.child.kill()
        made.child.communicate()


async def test_it_ends_within_a_second_whoever_is_connected_and_whatever_was_promised_is_on_record(organ: Organ) -> None:
    await organ.start()
    assert organ.child is not None
    assert await organ.ask(Borrow()) == Lent(kind="api-key")
    assert await organ.ask(RESERVE) == Granted()
    silent = await trio.open_unix_socket(str(organ.home.lease_socket))
    places = [Path(f"/proc/{organ.child.pid}/{name}").read_bytes() for name in ("environ", "cmdline")]
    began = time.monotonic()
    code, words = organ.end()
    assert time.monotonic() - began < 1
    assert code == 0
    assert "credential.lent" in words
    assert "The lease ended" in words
    assert TOKEN not in words
    assert not any(TOKEN.encode() in place for place in places)
    assert [call.state for call in read_calls(organ.home.ledger)] == ["reserved"]
    await silent.aclose()


@pytest.mark.parametrize("settled", [False, True])
async def test_wherever_it_dies_a_question_asked_again_has_its_effect_once(organ: Organ, settled: bool) -> None:
    settle = Settle(call="c1", cost_micro_usd=60)
    points = ["lease.before-settle", "lease.settled"] if settled else ["lease.before-reserve", "lease.reserved"]
    if settled:
        await organ.start()
        assert await organ.ask(RESERVE) == Granted()
        organ.end()
    for point in points:
        await organ.start(MIND_CRASH_AT=point)
        assert isinstance(await organ.ask(settle if settled else RESERVE), str)
        organ.reap()
    await organ.start()
    assert await organ.ask(settle if settled else RESERVE) == (Noted() if settled else Granted())
    organ.end()
    (call,) = read_calls(organ.home.ledger)
    assert (call.state, call.cost_micro_usd) == (("settled", 60) if settled else ("reserved", 0))
    assert read_difference(organ.home.ledger) == 0


async def test_a_ledger_that_cannot_be_read_ends_nothing_and_is_told(organ: Organ) -> None:
    organ.home.ledger.parent.mkdir(parents=True)
    organ.home.ledger.write_bytes(b"nothing of a ledger" * 100)
    await organ.start()
    answer = await organ.ask(RESERVE)
    assert isinstance(answer, Refused)
    assert "cannot be read as a ledger" in answer.reason
    assert await organ.ask(Borrow()) == Lent(kind="api-key")
    code, words = organ.end()
    assert code == 0
    assert "ledger.fault" in words
    assert words.count("ledger.fault") == 1


async def test_a_second_lease_on_the_same_home_is_refused(organ: Organ) -> None:
    await organ.start()
    argv = [sys.executable, "-m", "mind_body", "--home", str(organ.home.root), "organ", "lease"]
    other = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    assert other.returncode == 1
    assert "another process is the lease already" in other.stderr
    assert await organ.ask(RESERVE) == Granted(), "and its socket was not taken away"
