"""Door: the asking side of the lease: borrow a credential, reserve a call before it is made, settle it after (design §10).

Until the lease organ is built, this door opens the Mind's credential file itself and holds the dial's run cap.

1. No run, no money: who has not opened its run here is declined. So is who is held; the brake is read anew at every call.
2. A reservation counts whole until it is settled. Settling is idempotent by call id, and so is reserving.
3. A credential's text is in no repr. It is for the organ's own requests; nothing hands it on to a child.
"""

from dataclasses import dataclass, field

from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.home import Home
from mind_body.host.secrets import read_secret
from mind_body.log import Journal
from mind_body.model.session import Usage
from mind_body.model.spend import Declined, Reserved
from mind_body.money import render_usd


@dataclass(frozen=True, slots=True)
class Credential:
    """A borrowed secret."""

    secret: str = field(repr=False)


@dataclass(slots=True)
class _OpenRun:
    run_id: str
    spent: int
    """Micro-USD settled so far, before this process and in it."""
    reserved: dict[str, int] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)


class Lease:
    """A `Purse` for one half of a Mind. One run at a time, opened by whoever holds it. The first of `keys` that is there counts."""

    def __init__(self, home: Home, name: str, journal: Journal, keys: tuple[str, ...] = ("model-key",)) -> None:
        self._home = home
        self._name = name
        self._journal = journal
        self._keys = [home.model_key(name) if key == "model-key" else home.self_key(name) for key in keys]
        self._run: _OpenRun | None = None

    def open_run(self, run_id: str, settled_micro_usd: int) -> None:
        """The run was adopted; `settled_micro_usd` is what it has cost so far, by the record."""
        self._run = _OpenRun(run_id, settled_micro_usd)

    def close_run(self) -> None:
        self._run = None

    def borrow(self) -> Credential:
        """The model's credential. Raises CredentialError."""
        return Credential(read_secret(next((key for key in self._keys if key.exists()), self._keys[0])))

    async def reserve(self, call_id: str, ceiling_micro_usd: int) -> Reserved | Declined:
        """May this call be made, if it costs at most so much?"""
        control = read_control(self._home, self._name)
        run = self._run
        if isinstance(control, Held):
            return self._decline(call_id, Declined("held", control.reason))
        if run is None:
            return self._decline(call_id, Declined("held", "no run is granted"))
        if call_id in run.settled:
            return self._decline(call_id, Declined("held", "this call was made and settled already"))
        cap = control.dial.run_cap
        committed = run.spent + sum(amount for one, amount in run.reserved.items() if one != call_id)
        if committed + ceiling_micro_usd > cap:
            asked = f"the call may cost {render_usd(ceiling_micro_usd)}"
            left = f"{render_usd(committed)} of the run's {render_usd(cap)} are committed"
            return self._decline(call_id, Declined("budget", f"{asked}, and {left}"))
        run.reserved[call_id] = ceiling_micro_usd
        return Reserved()

    async def settle(self, call_id: str, usage: Usage, cost_micro_usd: int) -> None:
        """What it came to; nothing at all for a call that provably never left."""
        run = self._run
        if run is None or call_id not in run.reserved:
            return
        del run.reserved[call_id]
        run.settled.add(call_id)
        run.spent += cost_micro_usd
        self._journal.note(
            "call.settled",
            f"A model call cost {render_usd(cost_micro_usd)}.",
            level="debug",
            RUN=run.run_id,
            CALL=call_id,
            PREFIX_TOKENS=usage.prefix,
            CACHE_READ=usage.cache_read,
            COST_MICRO_USD=cost_micro_usd,
        )

    def _decline(self, call_id: str, declined: Declined) -> Declined:
        self._journal.note(
            "call.declined",
            "A model call was not made.",
            level="warning",
            RUN=self._run.run_id if self._run else None,
            CALL=call_id,
            REASON=declined.reason,
        )
        return declined
