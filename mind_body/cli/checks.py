"""Door: what `mind doctor` looks at. Each check looks at one thing and says whether it is well, what it saw, and what mends it.

No check changes anything. One that cannot even look is a check that failed, with the reason as its detail.
"""

import os
import shutil
import stat
import sys
from pathlib import Path

from mind_body.cli.account import Account, check_account
from mind_body.cli.finding import Check, look
from mind_body.cli.in_force import read_in_force
from mind_body.cli.model_checks import check_model
from mind_body.cli.pause_checks import check_pauses
from mind_body.cli.right_checks import check_rights, check_users
from mind_body.cli.self_checks import check_self
from mind_body.cli.spend_checks import check_purse, check_spending
from mind_body.cli.unit_checks import Carried, check_units_of
from mind_body.cli.wake_checks import check_wakes
from mind_body.config import list_minds, read_host_config, read_mind_config
from mind_body.control.effective import Held
from mind_body.control.files import read_control, read_dial
from mind_body.errors import CredentialError, MindBodyError
from mind_body.home import SOCKET_PATH_MAX, Home
from mind_body.host.secrets import read_secret
from mind_body.mind.reports import read_figures
from mind_body.mind.store import check_mind, open_mind
from mind_body.model.price_file import FILE_NAME, read_prices
from mind_body.persona.prompt import DOCTRINE_MAX
from mind_body.settings import MindConfig

ROOM_MB = 500
"""Less free than this and a mind, its log and a backup soon do not fit."""
PYTHON = (3, 11)


async def check_home(home: Home, carried: Carried | None = None) -> list[Check]:
    """The host, then each Mind. `carried`: what systemd knows of them, where it carries them."""
    checks = [_python(), _configuration(home), _prices(home), _sockets(home), _disk(home), *await check_purse(home), _minds(home)]
    if carried and carried.states.units is not None:
        checks.append(check_users())
    for name in list_minds(home):
        checks += await check_one(home, name, carried)
    return checks


async def check_one(home: Home, name: str, carried: Carried | None = None) -> list[Check]:
    """Everything of one Mind. A file that cannot be used ends what depends on it and nothing else."""
    checks = [_control(home, name), *(check_units_of(carried, name) if carried else ())]
    checks += [_mind_file(home, name), _encrypted(home, name)]
    try:
        config = read_mind_config(home, name)
    except MindBodyError as error:
        return [Check(f"{name}: configuration", ok=False, detail=str(error), fix=f"edit {home.mind_file(name)}"), *checks]
    checks.insert(0, Check(f"{name}: configuration", ok=True, detail=str(home.mind_file(name))))
    checks += [_persona(home, name, config), *_credentials(home, name, config)]
    checks += await check_rights(home, name, config) if carried and carried.states.units is not None else []
    checks += [*check_spending(home, name, config), *check_pauses(home, name, config), *check_wakes(home, name, config)]
    checks.append(
        await look(
            f"{name}: homeserver",
            lambda: _homeserver(home, name, config),
            f"see that it is up, [matrix] in {home.mind_file(name)}, and her secret in {home.matrix_credentials}",
        )
    )
    return [*checks, *await check_model(home, name, config), *await check_self(home, name, config)]


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(
        "python", sys.version_info >= PYTHON, version, "" if sys.version_info >= PYTHON else "install Python 3.11 or newer"
    )


def _configuration(home: Home) -> Check:
    try:
        read_host_config(home)
    except MindBodyError as error:
        return Check("configuration", ok=False, detail=str(error), fix=f"edit {home.config_file}")
    there = home.config_file.exists()
    return Check("configuration", ok=True, detail=str(home.config_file) if there else "no config.toml: every default holds")


def _prices(home: Home) -> Check:
    try:
        book = read_prices(home)
    except MindBodyError as error:
        return Check(
            "prices", ok=False, detail=str(error), fix=f"edit {home.etc / FILE_NAME}, or remove it: the package has its own"
        )
    own = home.etc / FILE_NAME
    return Check("prices", ok=True, detail=f"as of {book.as_of}, from {own if own.exists() else 'the package'}")


def _sockets(home: Home) -> Check:
    longest = len(bytes(home.persona_socket("x" * 32)))
    if longest > SOCKET_PATH_MAX:
        return Check(
            "sockets", ok=False, detail=f"paths in {home.run} are too long", fix="set XDG_RUNTIME_DIR to a short directory"
        )
    if home.run.exists() and not os.access(home.run, os.W_OK | os.X_OK):
        return Check(
            "sockets",
            ok=False,
            detail=f"{home.run} is not writable for this user",
            fix=f"chown it to who runs the organs: {home.run}",
        )
    return Check("sockets", ok=True, detail=str(home.run))


def _disk(home: Home) -> Check:
    place = next((path for path in (home.state, *home.state.parents) if path.exists()), Path("/"))
    free_mb = shutil.disk_usage(place).free // 1_000_000
    fix = "" if free_mb >= ROOM_MB else f"make room on the disk of {place}: a full one stops every Mind"
    return Check("disk", free_mb >= ROOM_MB, f"{free_mb:,} MB free at {place}", fix)


def _minds(home: Home) -> Check:
    names = list_minds(home)
    stray = [path.name for path in home.minds_dir.glob("*") if path.suffix == ".toml" and path.stem not in names]
    if stray:
        fix = "rename it: small letters, digits and '-', at most 32, a letter first"
        return Check("minds", ok=False, detail=f"no Mind can be named as {', '.join(stray)}", fix=fix)
    return Check("minds", ok=True, detail=", ".join(names) or "none yet; `mind new NAME` makes one")


def _control(home: Home, name: str) -> Check:
    """Held by the operator is well; held because a file cannot be used is not."""
    control = read_control(home, name)
    what = f"{name}: brake and dial"
    if not isinstance(control, Held):
        return Check(
            what,
            ok=True,
            detail=f"released; cadence {control.dial.cadence_s:g} s, at most {control.dial.run_cap / 1e6:g} USD a run",
        )
    directory = home.control_dir(name)
    try:
        read_dial(home, name)
    except MindBodyError as error:
        return Check(what, ok=False, detail=str(error), fix=f"`mind dial {name} --heat 1` writes it anew")
    if str(directory) not in control.reason:
        return Check(what, ok=True, detail=f"held: {control.reason}", fix=f"`mind brake release {name}` when she may act")
    about_rights = "chown" in control.reason or "chmod" in control.reason
    fix = "mend it as it says" if about_rights else f"`mind brake hold {name}`, or release, writes it anew"
    return Check(what, ok=False, detail=control.reason, fix=fix)


def _mind_file(home: Home, name: str) -> Check:
    path = home.mind_db(name)
    try:
        open_mind(path).close()
        found = check_mind(path)
    except MindBodyError as error:
        return Check(f"{name}: mind", ok=False, detail=str(error), fix=f"`mind restore {name} FILE` brings back a backup")
    if found != "ok":
        return Check(f"{name}: mind", ok=False, detail=f"{path}: {found}", fix=f"stop the organs, then `mind restore {name} FILE`")
    return Check(f"{name}: mind", ok=True, detail=f"{path} ({path.stat().st_size:,} bytes), whole")


def _encrypted(home: Home, name: str) -> Check:
    what = f"{name}: encrypted rooms"
    try:
        mind = open_mind(home.mind_db(name))
        try:
            with mind.read() as tx:
                rooms = read_figures(tx, 0).encrypted_rooms
        finally:
            mind.close()
    except MindBodyError:
        return Check(what, ok=True, detail="not known: her mind cannot be read")
    if not rooms:
        return Check(what, ok=True, detail="none")
    fix = "she cannot read encryption yet: make a room without it (in Element: 'Enable end-to-end encryption' off)"
    return Check(what, ok=False, detail=", ".join(rooms), fix=fix)


def _persona(home: Home, name: str, config: MindConfig) -> Check:
    what = f"{name}: persona"
    files = [home.persona_file(name), *(home.persona_file(name).parent / path for path in config.persona.doctrine)]
    try:
        sizes = [len(path.read_bytes()) for path in files]
        for path in files:
            path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Check(
            what,
            ok=False,
            detail=f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else f"not UTF-8: {error}",
            fix=f"write {home.persona_file(name)} as UTF-8 text; [persona] doctrine names the rest",
        )
    if sum(sizes[1:]) > DOCTRINE_MAX:
        return Check(
            what, ok=False, detail=f"doctrine is {sum(sizes[1:]):,} bytes", fix=f"shorten it to {DOCTRINE_MAX:,} bytes together"
        )
    return Check(
        what, ok=sizes[0] > 0, detail=f"{sum(sizes):,} bytes", fix="" if sizes[0] else f"{files[0]} is empty: write who she is"
    )


def _credentials(home: Home, name: str, config: MindConfig) -> list[Check]:
    places = dict.fromkeys((home.matrix_credentials, home.model_credentials))
    wanted = [home.matrix_secret(name, config.matrix.login)]
    wanted += [home.model_key(name)] if config.model.credential != "none" else []
    present = [path for place in places for path in sorted(place.glob(f"{name}.*")) if path not in wanted]
    faults = []
    for file in [*wanted, *present]:
        try:
            read_secret(file)
        except CredentialError as error:
            faults.append(str(error))
    open_to_others = [place for place in dict.fromkeys((home.credentials, *places)) if _is_open(place)]
    faults += [f"{place} is open to others; chmod 700 it" for place in open_to_others]
    detail = "; ".join(faults) or ", ".join(file.name for file in [*wanted, *present])
    return [Check(f"{name}: credentials", not faults, detail, "mend each as it says" if faults else "")]


def _is_open(place: Path) -> bool:
    return place.exists() and bool(place.stat().st_mode & (stat.S_IRWXO | stat.S_IWGRP))


async def _homeserver(home: Home, name: str, config: MindConfig) -> str:
    matrix = config.matrix
    secret = read_in_force(home.matrix_secret(name, matrix.login))
    await check_account(Account(matrix.homeserver, matrix.user, matrix.login, secret))
    return f"{matrix.homeserver} answers, {matrix.user} can log in"
