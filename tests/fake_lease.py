"""Door: a lease that is a thread and a few dictionaries, over the real socket and the real lines. It can be slow, deaf, or away.

It passes the suite that the real organ passes (tests/real/test_lease_conformance.py). What it was asked is kept in `asked`.
"""

import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mind_body.clock import next_day, now_ms
from mind_body.config import read_host_config, read_mind_config
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import CredentialError
from mind_body.home import Home
from mind_body.host.peers import Peer, read_peer
from mind_body.host.secrets import open_secret, read_secret
from mind_body.model.lease_lines import (
    LINE_MAX,
    Answer,
    Borrow,
    Granted,
    Lent,
    Noted,
    Question,
    Refused,
    Report,
    Reserve,
    Settle,
    Trouble,
    parse_question,
    render_line,
)
from mind_body.money import parse_usd, render_usd


@dataclass
class _Call:
    mind: str
    run: str
    credential: str
    committed: int
    at: int
    settled: bool = False


@dataclass
class FakeLease:
    """Serves between `start` and `stop`; what it knows outlives that, as a ledger does."""

    home: Home
    asked: list[Question] = field(default_factory=list)
    reports: dict[str, tuple[int, int]] = field(default_factory=dict)
    refusals: dict[str, Refused] = field(default_factory=dict)
    """What is answered to every `reserve`, `borrow` or `settle` while it stands here."""
    before: Callable[[Question], bytes | None] = lambda _: None
    """Called in its thread before it does anything: what comes back is sent instead, and nothing is done."""
    after: Callable[[Question], bytes | None] = lambda _: None
    """The same, when it was done."""
    _calls: dict[tuple[str, str], _Call] = field(default_factory=dict)
    _stops: dict[tuple[str, str], tuple[Trouble, int]] = field(default_factory=dict)
    _listening: socket.socket | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> "FakeLease":
        path = self.home.lease_socket
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        listening = self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen(64)
        threading.Thread(target=self._serve, args=(listening,), daemon=True).start()
        return self

    def stop(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            self.home.lease_socket.unlink(missing_ok=True)

    def count(self, ask: str) -> int:
        """How many questions of a kind there were."""
        return sum(one.ask == ask for one in self.asked)

    def cost(self, mind: str = "ada") -> int:
        """What is committed for a Mind."""
        return sum(call.committed for call in self._calls.values() if call.mind == mind)

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(line,), daemon=True).start()

    def _converse(self, line: socket.socket) -> None:
        with line:
            pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            peer = read_peer(self.home, pid)
            if peer is None:
                line.sendall(render_line(Refused(kind="peer", reason=f"process {pid} is nobody")))
                return
            raw = b""
            while not raw.endswith(b"\n") and len(raw) < LINE_MAX:
                chunk = line.recv(65_536)
                if not chunk:
                    return
                raw += chunk
            question = parse_question(raw)
            if not isinstance(question, str):
                self._tell(line, peer, question)

    def _tell(self, line: socket.socket, peer: Peer, question: Question) -> None:
        said, descriptor = self.before(question), None
        if said is None:
            with self._lock:
                self.asked.append(question)
                answer, descriptor = self._answer(peer, question)
            said = self.after(question)
            said = render_line(answer) if said is None else said
        try:
            if descriptor is not None:
                socket.send_fds(line, [said], [descriptor])
            elif said:
                line.sendall(said)
        except OSError:
            return
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _answer(self, peer: Peer, question: Question) -> tuple[Answer, int | None]:
        scripted = self.refusals.get(question.ask)
        if scripted is not None:
            return scripted, None
        match question:
            case Borrow():
                return self._lend(peer)
            case Reserve():
                return self._reserve(peer, question), None
            case Settle():
                return self._settle(peer, question), None
            case Report():
                self.reports[question.run] = (question.ours_micro_usd, question.theirs_micro_usd)
                return Noted(), None

    def _lend(self, peer: Peer) -> tuple[Answer, int | None]:
        control = read_control(self.home, peer.mind)
        kind, path = self._key(peer)
        if isinstance(control, Held):
            return Refused(kind="held", reason=control.reason), None
        if kind == "none":
            return Refused(kind="fault", reason="there is no credential"), None
        try:
            read_secret(path)
            return Lent(kind=kind), open_secret(path)
        except CredentialError as error:
            return Refused(kind="authentication", reason=str(error)), None

    def _reserve(self, peer: Peer, ask: Reserve) -> Answer:
        control, known = read_control(self.home, peer.mind), self._calls.get((peer.mind, ask.call))
        if isinstance(control, Held):
            return Refused(kind="held", reason=control.reason)
        if known is not None and known.settled:
            return Refused(kind="fault", reason="this call was settled already")
        try:
            credential = self._credential(peer)
        except CredentialError as error:
            return Refused(kind="authentication", reason=str(error))
        for (whose, _), (trouble, since) in self._stops.items():
            if whose == credential and not self._is_over(peer, trouble, since):
                return Refused(kind=trouble.kind, reason=trouble.reason, until=trouble.until)
        return self._spend(peer, ask, credential, control.dial.run_cap)

    def _spend(self, peer: Peer, ask: Reserve, credential: str, run_cap: int) -> Answer:
        host, day = read_host_config(self.home), parse_usd(read_mind_config(self.home, peer.mind).spend.day_usd)
        others = {key: call for key, call in self._calls.items() if key != (peer.mind, ask.call)}
        run = sum(call.committed for call in others.values() if (call.mind, call.run) == (peer.mind, ask.run))
        hers = sum(call.committed for call in others.values() if call.mind == peer.mind)
        words = f"the call may cost {render_usd(ask.ceiling_micro_usd)}, and {render_usd(run)} are committed"
        if ask.ceiling_micro_usd and run + ask.ceiling_micro_usd > run_cap:
            return Refused(kind="budget", reason=words, until=None if ask.ceiling_micro_usd > run_cap else now_ms())
        if ask.ceiling_micro_usd and hers + ask.ceiling_micro_usd > day:
            return Refused(kind="spend", reason=words, until=next_day(now_ms(), host.time_zone))
        self._calls[peer.mind, ask.call] = _Call(peer.mind, ask.run, credential, ask.ceiling_micro_usd, now_ms())
        return Granted()

    def _settle(self, peer: Peer, ask: Settle) -> Answer:
        call = self._calls.get((peer.mind, ask.call))
        if call is not None and not call.settled:
            call.committed, call.settled = ask.cost_micro_usd, True
            if ask.trouble is not None:
                self._stops[call.credential, ask.trouble.kind] = (ask.trouble, call.at)
        return Noted()

    def _is_over(self, peer: Peer, trouble: Trouble, since: int) -> bool:
        if trouble.kind in {"limited", "overloaded"}:
            return (trouble.until or 0) <= now_ms()
        changed = [
            path.stat().st_ctime_ns // 1_000_000 for path in (self._key(peer)[1], self.home.mind_file(peer.mind)) if path.exists()
        ]
        return max(changed) > since

    def _key(self, peer: Peer) -> tuple[str, Path]:
        config, shared = read_mind_config(self.home, peer.mind), self.home.model_key(peer.mind)
        own = self.home.credentials / f"{peer.mind}.self-key"
        if peer.organ == "persona":
            return config.model.credential, shared
        return config.self.credential, own if own.exists() or not shared.exists() else shared

    def _credential(self, peer: Peer) -> str:
        kind, path = self._key(peer)
        config = read_mind_config(self.home, peer.mind)
        server = config.model.base_url if peer.organ == "persona" else config.self.base_url
        return f"none of {peer}" if kind == "none" else f"{server}\n{read_secret(path)}"
