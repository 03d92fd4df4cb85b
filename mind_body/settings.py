"""Shapes: the settings of our own files, with every default. `config.py` reads them; `mind new` writes them out, commented.

The sentence below a setting is its documentation: `cli/template.py` puts it into the files that people edit, so write it for them.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseModel):
    """A table of one of our own files: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Usd = Annotated[float, Field(ge=0, le=1_000_000)]
SPAN_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$"
"""A span of a day, like 22:00-07:00; it may go across midnight."""


def _has_length(span: str) -> str:
    if span[:5] == span[6:]:
        raise ValueError("begins when it ends: for all day long there is the brake")
    return span


def _leaves_time(spans: tuple[str, ...]) -> tuple[str, ...]:
    """Together, too, they end at some time: else she would wait for ever, and say that she answers tomorrow."""
    awake = set(range(1440))
    for span in spans:
        begin, end = (int(part[:2]) * 60 + int(part[3:]) for part in span.split("-"))
        awake -= set(range(begin, end) if begin < end else (*range(begin, 1440), *range(end)))
    if not awake:
        raise ValueError("leave no minute of a day: for all day long there is the brake")
    return spans


Span = Annotated[str, Field(pattern=SPAN_PATTERN, description="a span of a day, like 22:00-07:00"), AfterValidator(_has_length)]
RoomId = Annotated[
    str, Field(pattern=r"^(![^\s]+)?$", description="a room's id, which begins with '!' (an alias may lead elsewhere)")
]


class HostSpendConfig(Settings):
    """`[spend]`: what all Minds of this host may spend together. A call that could pass a cap is refused before it is made."""

    day_usd: Usd = 50.0
    """In one day of `time_zone`."""
    month_usd: Usd = 500.0
    """In one month."""


class HostConfig(Settings):
    """`config.toml`: what holds for every Mind of the host."""

    look_s: Positive = 30.0
    """How often each daemon looks by itself; pokes only make it sooner (design §2)."""
    start_grace_s: Positive = 120.0
    """A run that nobody adopted is closed as dead after this (design §3)."""
    restart_min_s: Positive = 0.5
    """`mind up` restarts what died after this long; the wait doubles with every death, up to `restart_max_s`."""
    restart_max_s: Positive = 60.0
    """The longest of those waits."""
    sync_timeout_s: Positive = 30.0
    """How long the homeserver may hold one /sync open."""
    gap_max_events: Annotated[int, Field(ge=1)] = 1000
    """How far a hole in a room's timeline is paged back; beyond it she is told how many she missed."""
    gap_max_days: Positive = 7.0
    """The same in days."""
    context_keep_days: Positive = 30.0
    """Context (what nobody addressed to her) is deleted after this."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """`debug`, `info`, `warning` or `error`. No level shows what people wrote."""
    log_format: Literal["text", "json"] = "text"
    """`text` for people, `json` for machines: one object per line. Where systemd's journal reads it, lines are fields anyhow."""
    time_zone: str = "UTC"
    """The operator's, like `Europe/Berlin`: what a day and a month are for spending, and what quiet hours go by."""
    spend: HostSpendConfig = HostSpendConfig()


class MatrixConfig(Settings):
    """`[matrix]`: who she is."""

    homeserver: Annotated[str, Field(pattern=r"^https?://", description="an address that begins with https:// or http://")]
    """The client API's base URL, `https://…`."""
    user: Annotated[str, Field(pattern=r"^@[^:\s]+:\S+$", description="a full user id, @name:server")]
    """Her full user id, `@name:server`."""
    login: Literal["password", "token"] = "password"
    """What `credentials/NAME.matrix-password` or `credentials/NAME.matrix-token` holds."""


class PeopleConfig(Settings):
    """`[people]`: lists of user ids or globs (`@*:example.org`), and the rooms she acts in. Roles come from the id alone."""

    operators: tuple[str, ...] = ()
    """Who answers for her, and whom she tells what is wrong. An operator may always address and invite her."""
    may_address: tuple[str, ...] = ("*",)
    """Whose messages can be mail. An operator always may."""
    may_start: tuple[str, ...] = ()
    """Whose requests may start work of her Self. An operator's always may."""
    may_steer: tuple[str, ...] = ()
    """Whose messages in the thread of a run reach the Self that works there; she knows them as members. An operator's always do."""
    may_invite: tuple[str, ...] = ("*",)
    """Whose invites are accepted. An operator's always are."""
    persons: tuple[str, ...] = ("*",)
    """Who, with operators, counts as a person: only their word gives her new turns where bots talk with her (`loop_turns`)."""
    bots: tuple[str, ...] = ()
    """Accounts that are not persons, whatever `persons` says. Other Minds of ours are known by a mark in what they send."""
    rooms: tuple[str, ...] = ("*",)
    """Room ids or globs where anything can be mail."""
    open_rooms: tuple[str, ...] = ()
    """Rooms that share one conversation with the public ones (design §5)."""


class ModelConfig(Settings):
    """`[model]`: whose answers she speaks."""

    provider: Literal["local", "openai", "claude"] = "local"
    """`local`: the small embedded model. `openai`: any OpenAI-compatible server. `claude`: the Claude Code CLI."""
    model: str = ""
    """The provider's name for it; empty is the provider's default."""
    base_url: str = ""
    """`openai`: the server, up to and including /v1. `claude`: the Messages API, empty for Anthropic's own."""
    window_tokens: Annotated[int, Field(ge=2048)] | None = None
    """The context window where the provider does not tell it; unknown counts as 128,000."""
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    """Most tokens that one answer may take; an answer cut off there is unreadable, never half said."""
    timeout_s: Positive = 600.0
    """A model call without a byte for this long is a fault."""
    credential: Literal["none", "api-key", "oauth-token"] = "none"
    """What `credentials/NAME.model-key` holds."""
    cli: str = ""
    """`claude`: path of the binary; empty looks in the places that `mind doctor` names."""
    sandbox: bool = True
    """`claude`: hold the child in bubblewrap. Off only where the kernel forbids namespaces, which `mind doctor` says."""


class PersonaConfig(Settings):
    """`[persona]`: how she takes turns."""

    linger_s: Seconds = 60.0
    """How long she stays, session open and without a run, after her last turn."""
    children: Annotated[int, Field(ge=1)] = 2
    """`claude`: lingering children at most; the longest idle is closed first."""
    max_turns: Annotated[int, Field(ge=1, le=64)] = 4
    """Turns in one run (design §3)."""
    acts: tuple[Literal["say", "react", "start_self_run", "tell_self", "urgency", "tempo"], ...] = (
        "say",
        "react",
        "start_self_run",
        "tell_self",
        "urgency",
        "tempo",
    )
    """The fields of a reply that this Mind may use. Work counts only where `[self]` is enabled, the last two where `beat` is on."""
    silence: Literal["allowed", "never-when-addressed"] = "allowed"
    """`never-when-addressed` asks her once more when she answers mail with nothing."""
    doctrine: tuple[str, ...] = ()
    """Files beside `persona/NAME.md` that go before it in her system prompt; together at most 96 KiB."""
    language: Literal["en"] = "en"
    """The catalogue that fixed notices are taken from."""
    debounce_s: Seconds = 1.5
    """A message waits this long for the next one of the same breath."""
    debounce_max_s: Seconds = 5.0
    """But never longer than this from the first one on (design §9)."""
    beat: bool = False
    """Scheduled wakes, also when nobody spoke: `base_cooldown_s / heat` of the dial apart, twice as far after each in silence."""
    home_room: RoomId = ""
    """The room id where she speaks unprompted; without one she has no scheduled wakes."""
    quiet_hours: Annotated[tuple[Span, ...], AfterValidator(_leaves_time)] = ()
    """Spans of the day (of the host's `time_zone`) in which she keeps quiet, like `22:00-07:00`."""
    quiet_for: Literal["unprompted", "everyone"] = "unprompted"
    """Whom she keeps quiet for: nobody who speaks to her, or everyone but operators."""
    loop_turns: Annotated[int, Field(ge=1, le=100)] = 6
    """Turns she takes in a room or thread since a person last spoke there; bots get no more."""
    counterpart_turns: Annotated[int, Field(ge=1)] = 200
    """Turns a day for what one account writes, operators apart."""


WORKSPACE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9-]{0,63}$"
"""A workspace's name: it becomes the name of a directory."""
WorkspaceName = Annotated[
    str, Field(pattern=WORKSPACE_PATTERN, description="a workspace's name: letters, digits and '-', at most 64")
]


class SelfConfig(Settings):
    """`[self]`: her half that works: a `claude` process with tools, in a sandbox."""

    enabled: bool = False
    """Whether she has this half. Without it nothing of what follows counts."""
    model: str = ""
    """The model's name, as the `claude` CLI takes it; empty is the CLI's default."""
    base_url: str = ""
    """The Messages API, empty for Anthropic's own."""
    credential: Literal["none", "api-key", "oauth-token"] = "none"
    """What `credentials/NAME.self-key` holds; where that is absent, `credentials/NAME.model-key`."""
    max_turns: Annotated[int, Field(ge=1)] = 500
    """Most model calls for one message, enforced by the CLI: a backstop."""
    ceiling_tokens: Annotated[int, Field(ge=1024)] = 300_000
    """A request with this prefix asks for the flush; less where the window is smaller (design §8)."""
    flush_headroom_tokens: Annotated[int, Field(ge=1024)] = 60_000
    """A flush that grows past the ceiling by this is interrupted; so much of a small window is kept free."""
    flush_grace_s: Positive = 900.0
    """So is a flush that takes longer."""
    stall_s: Positive = 600.0
    """A model call without a line for this long is interrupted."""
    linger_s: Annotated[float, Field(ge=0, le=900)] = 900.0
    """How long the process stays open for the next message after a result; never longer than its cache stays warm."""
    workspaces: dict[WorkspaceName, str] = {}
    """Workspaces that lie elsewhere: name = directory. Any other name is a directory of her own state."""
    binds_readable: tuple[str, ...] = ()
    """Further directories that her sandbox shows, read-only."""
    binds_writable: tuple[str, ...] = ()
    """Further directories that she may write to from her sandbox."""
    config_seed: str = ""
    """A directory that every session's own configuration of the CLI is copied from; empty begins with none."""
    cli: str = ""
    """Path of the binary; empty looks in the places that `mind doctor` names."""
    sandbox: bool = True
    """Hold the child in bubblewrap. Off only where the kernel forbids namespaces, which `mind doctor` says."""
    home_room: RoomId = ""
    """The room id where work started from the command line has its thread; empty is a direct conversation with an operator."""


class SpendConfig(Settings):
    """`[spend]`: what she may spend. A call that could pass a cap is refused before it is made."""

    day_usd: Usd = 10.0
    """In one day of the host's `time_zone`, both halves together."""
    month_usd: Usd = 100.0
    """In one month."""
    conversation_day_usd: Usd | None = None
    """For one conversation in one day; not set is no cap of its own."""
    conversation_month_usd: Usd | None = None
    """For one conversation in one month."""


class MindConfig(Settings):
    """`minds/NAME.toml`: one Mind."""

    matrix: MatrixConfig
    people: PeopleConfig = PeopleConfig()
    model: ModelConfig = ModelConfig()
    persona: PersonaConfig = PersonaConfig()
    self: SelfConfig = SelfConfig()
    spend: SpendConfig = SpendConfig()
