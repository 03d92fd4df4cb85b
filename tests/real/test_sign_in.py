"""Signing in at a real Synapse: once by password, or by token; the device id is chosen first and kept for ever."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from mind_body.host.secrets import read_secret, write_secret
from mind_body.log import Journal
from mind_body.matrix.client import MatrixClient
from mind_body.mind.outbox import admit_said, mark_attempted, read_said
from mind_body.mind.rooms import read_identity
from mind_body.mind.store import open_mind
from mind_body.mouth.seat import Seat
from mind_body.mouth.sign_in import keep_signed_in
from mind_body.settings import HostConfig
from tests.builders import make_config, make_home, make_new_said
from tests.real.parts.synapse import Account, Homeserver, free_port

pytestmark = pytest.mark.real
DEADLINE_S = 30.0


class Told(Journal):
    """A journal that remembers."""

    def __init__(self) -> None:
        super().__init__("mouth", "ada")
        self.kinds: list[str] = []
        self.sentences: list[str] = []

    def note(self, kind: str, sentence: str, **fields: Any) -> None:
        self.kinds.append(kind)
        self.sentences.append(sentence)


class Place:
    """A seat over a home of its own, and what was told there."""

    def __init__(self, root: Path, client: MatrixClient, base_url: str, user: str, login: str = "password") -> None:
        self.told = Told()
        self.home = make_home(root, *(() if (root / "minds").exists() else ("ada",)))
        self.mind = open_mind(self.home.mind_db("ada"))
        self.seat = Seat(
            name="ada",
            home=self.home,
            host=HostConfig(look_s=0.05),
            config=make_config(matrix={"homeserver": base_url, "user": user, "login": login}),
            mind=self.mind,
            client=client,
            journal=self.told,
            poke_heartbeat=lambda: None,
            progress=self._tick,
        )
        self.ticks = 0

    def _tick(self) -> None:
        self.ticks += 1

    def secret(self, kind: str) -> Path:
        return self.home.credentials / f"ada.matrix-{kind}"


@pytest.fixture
def account(homeserver: Homeserver) -> Account:
    return homeserver.register(homeserver.unique("ada-signs-in-"))


async def wait_for(check: Callable[[], bool], deadline_s: float = 30.0) -> None:
    with trio.fail_after(deadline_s):
        while not check():
            await trio.sleep(0.02)


async def test_one_login_by_password_serves_every_later_start_on_the_same_device(
    homeserver: Homeserver, account: Account, tmp_path: Path, nursery: trio.Nursery
) -> None:
    async with MatrixClient() as client:
        devices = []
        for _ in range(2):
            place = Place(tmp_path / "home", client, homeserver.base_url, account.user_id)
            write_secret(place.secret("password"), account.password)
            nursery.start_soon(keep_signed_in, place.seat)
            with trio.fail_after(DEADLINE_S):
                await place.seat.account()
            with place.mind.read() as tx:
                devices.append((read_identity(tx), read_secret(place.secret("session"))))
        nursery.cancel_scope.cancel()
    assert devices[0] == devices[1]
    assert place.secret("session").stat().st_mode & 0o777 == 0o600


async def test_the_device_id_is_stored_before_the_homeserver_is_asked(
    account: Account, tmp_path: Path, nursery: trio.Nursery
) -> None:
    async with MatrixClient() as client:
        place = Place(tmp_path / "home", client, f"http://127.0.0.1:{free_port()}", account.user_id)
        write_secret(place.secret("password"), account.password)
        nursery.start_soon(keep_signed_in, place.seat)
        await wait_for(lambda: "matrix.waiting" in place.told.kinds)
        with place.mind.read() as tx:
            assert read_identity(tx) is not None
        nursery.cancel_scope.cancel()


async def test_only_a_login_makes_it_doubtful_what_was_taken_from_her_device(
    homeserver: Homeserver, account: Account, tmp_path: Path, nursery: trio.Nursery
) -> None:
    """The homeserver remembers by the device, and forgets what one that was logged out had sent."""

    async def sign_in() -> str | None:
        place = Place(tmp_path / "home", client, homeserver.base_url, account.user_id)
        write_secret(place.secret("password"), account.password)
        nursery.start_soon(keep_signed_in, place.seat)
        with trio.fail_after(DEADLINE_S):
            await place.seat.account()
        with place.mind.write() as tx:
            identity, said = read_identity(tx), read_said(tx, "s1")
            assert identity is not None
            if said is None:
                admit_said(tx, [make_new_said("s1", "!room")], None, 1)
                mark_attempted(tx, "s1", identity.device_id, 2)
        return said.device_id if said else None

    async with MatrixClient() as client:
        await sign_in()
        kept = await sign_in()
        assert kept is not None
        assert kept.startswith("MIND")
        homeserver.person_of(account).call("POST", "/logout/all", json={})
        assert await sign_in() is None
        nursery.cancel_scope.cancel()


async def test_a_token_brings_its_own_device(
    homeserver: Homeserver, account: Account, tmp_path: Path, nursery: trio.Nursery
) -> None:
    async with MatrixClient() as client:
        place = Place(tmp_path / "home", client, homeserver.base_url, account.user_id, "token")
        write_secret(place.secret("token"), account.token)
        nursery.start_soon(keep_signed_in, place.seat)
        with trio.fail_after(DEADLINE_S):
            await place.seat.account()
        assert place.seat.identity is not None
        assert place.seat.identity.device_id == account.device_id
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("login", ["password", "token"])
async def test_a_wrong_secret_is_told_once_and_the_right_one_is_taken_when_it_is_there(
    homeserver: Homeserver, account: Account, tmp_path: Path, nursery: trio.Nursery, login: str
) -> None:
    right = {"password": account.password, "token": account.token}[login]
    async with MatrixClient() as client:
        place = Place(tmp_path / "home", client, homeserver.base_url, account.user_id, login)
        write_secret(place.secret(login), "not the right one")
        nursery.start_soon(keep_signed_in, place.seat)
        await wait_for(lambda: place.seat.trouble is not None)
        write_secret(place.secret(login), "still not the right one")
        looked = place.ticks
        await wait_for(lambda: place.ticks >= looked + 5)
        write_secret(place.secret(login), right)
        with trio.fail_after(DEADLINE_S):
            await place.seat.account()
        nursery.cancel_scope.cancel()
    assert place.told.kinds.count("matrix.credential") == 1
    assert str(place.secret(login)) in place.told.sentences[0]
    assert not any(secret in sentence for sentence in place.told.sentences for secret in (right, "not the right one"))


async def test_somebody_elses_token_is_refused_by_name(
    homeserver: Homeserver, account: Account, tmp_path: Path, nursery: trio.Nursery
) -> None:
    async with MatrixClient() as client:
        other = homeserver.register(homeserver.unique("eve-signs-in-"))
        place = Place(tmp_path / "home", client, homeserver.base_url, account.user_id, "token")
        write_secret(place.secret("token"), other.token)
        nursery.start_soon(keep_signed_in, place.seat)
        await wait_for(lambda: place.seat.trouble is not None)
        assert other.user_id in (place.seat.trouble or "")
        nursery.cancel_scope.cancel()
