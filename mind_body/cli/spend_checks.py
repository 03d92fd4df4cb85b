"""Door: what `mind doctor` looks at behind the purse: the lease and its ledger, the caps, and who may read the keys.

Before anything runs for the first time there is no lease and no ledger, which is well. A cap that is odd is told, and is well, too:
what an operator may spend is an operator's to say.
"""

import os
import pwd

from mind_body.cli.finding import Check, look
from mind_body.config import read_host_config
from mind_body.control.effective import Released
from mind_body.control.files import read_control
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.handover import ask_line
from mind_body.host.liveness import read_holder
from mind_body.lease.ledger_file import BEGUN
from mind_body.lease.ledger_read import read_difference, read_totals
from mind_body.model.lease_lines import LINE_MAX, parse_answer
from mind_body.money import parse_usd, render_usd
from mind_body.settings import HostConfig, MindConfig

ORGANS = ("mouth", "heartbeat")


async def check_purse(home: Home) -> list[Check]:
    """The lease, then its ledger."""
    return [await _lease(home), _ledger(home)]


def check_spending(home: Home, name: str, config: MindConfig) -> list[Check]:
    """A Mind's caps, and her keys where it can be seen who is to read them."""
    return [_caps(home, name, config), *_keys(home, name, config)]


async def _lease(home: Home) -> Check:
    if read_holder(home.lock_file("lease")) is not None:
        return await look("lease", lambda: _ask(home), f"see its journal; {home.lease_socket} is where it is asked")
    others = [organ for organ in ORGANS if read_holder(home.lock_file(organ)) is not None]
    if others:
        detail = f"it does not run, and the {others[0]} does: no model is called without it"
        return Check("lease", ok=False, detail=detail, fix=f"{_how(home)}; start it again" if home.root else _how(home))
    return Check("lease", ok=True, detail=f"it does not run; {_how(home)}")


def _how(home: Home) -> str:
    return "`mind up` runs it with the others" if home.root is not None else "`systemctl start mind-lease` starts it"


async def _ask(home: Home) -> str:
    """We are no half of a Mind, and it says so: then it answers. It is asked for nothing, which it need not warn of."""
    handed = await ask_line(home.lease_socket, b"", LINE_MAX)
    if isinstance(handed, str):
        raise MindBodyError(handed)
    if handed.descriptor is not None:
        os.close(handed.descriptor)
    answer = parse_answer(handed.line)
    if isinstance(answer, str):
        raise MindBodyError(f"who answers at {home.lease_socket} is no lease: {answer}")
    return f"it answers at {home.lease_socket}"


def _ledger(home: Home) -> Check:
    """That it can be read, that it is of this release, and that its sums are those of its rows."""
    path = home.ledger
    if not path.exists() and not path.with_name(BEGUN).exists():
        return Check("ledger", ok=True, detail="none yet: the lease makes it when it starts for the first time")
    fix = f"put the ledger back in its place; without one nothing is lent. What is in {path.parent} is one thing"
    try:
        if not path.exists():
            return Check("ledger", ok=False, detail=f"{path} is gone", fix=f"put it back, or remove {path.parent} to begin anew")
        off = read_difference(path)
        read_totals(path, "", "")
    except MindBodyError as error:
        return Check("ledger", ok=False, detail=str(error), fix=fix)
    if off:
        return Check("ledger", ok=False, detail=f"{path}: its sums and its rows differ by {render_usd(off)}", fix=fix)
    return Check("ledger", ok=True, detail=f"{path} ({path.stat().st_size:,} bytes), its sums are right")


def _caps(home: Home, name: str, config: MindConfig) -> Check:
    host, spend = _host(home), config.spend
    told = f"{render_usd(parse_usd(spend.day_usd))} a day, {render_usd(parse_usd(spend.month_usd))} a month"
    odd = [*_odd_caps(config, host), *_odd_run(home, name, config)]
    detail = "; ".join([told, *odd])
    fix = (
        f"mend [spend] in {home.mind_file(name)} or {home.config_file}, or turn the dial, if that is not what you want"
        if odd
        else ""
    )
    return Check(f"{name}: caps", ok=True, detail=detail, fix=fix)


def _odd_caps(config: MindConfig, host: HostConfig) -> list[str]:
    spend, found = config.spend, []
    if not spend.day_usd or not spend.month_usd:
        found.append("she may spend nothing: only what is free is called")
    if spend.month_usd < spend.day_usd:
        found.append("a month's cap is below a day's")
    if host.spend.day_usd < spend.day_usd or host.spend.month_usd < spend.month_usd:
        found.append("all Minds together may spend less than she alone")
    if spend.conversation_day_usd is not None and spend.conversation_day_usd > spend.day_usd:
        found.append("one conversation may cost more in a day than she may spend")
    return found


def _odd_run(home: Home, name: str, config: MindConfig) -> list[str]:
    """A run that may cost more than its day is refused in the middle of its work."""
    control = read_control(home, name)
    if isinstance(control, Released) and control.dial.run_cap > parse_usd(config.spend.day_usd):
        return [f"one run may cost {render_usd(control.dial.run_cap)}, more than the day"]
    return []


def _host(home: Home) -> HostConfig:
    """A file that cannot be used is another check's."""
    try:
        return read_host_config(home)
    except MindBodyError:
        return HostConfig()


def _keys(home: Home, name: str, config: MindConfig) -> list[Check]:
    """Only while the lease runs is it seen as whom: by the lock that it holds. Under systemd it is handed them, as root's."""
    if home.root is None:
        return []
    wanted = [home.model_key(name)] if config.model.credential != "none" else []
    wanted += [home.self_key(name)] if config.self.enabled and config.self.credential != "none" else []
    lock = home.lock_file("lease")
    there = [path for path in wanted if path.exists()]
    if not there or read_holder(lock) is None:
        return []
    reader = lock.stat().st_uid
    strange = [path for path in there if reader not in {0, path.stat().st_uid}]
    if strange:
        detail = f"the lease runs as {_user(reader)}, and {strange[0]} is {_user(strange[0].stat().st_uid)}'s"
        return [Check(f"{name}: keys", ok=False, detail=detail, fix=f"chown {_user(reader)} {' '.join(map(str, strange))}")]
    return [Check(f"{name}: keys", ok=True, detail="the lease can read " + ", ".join(path.name for path in there))]


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
