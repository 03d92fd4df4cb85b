"""Shapes: the constants of a Self run, in one frozen record."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """The table of design §8, in milliseconds and tokens. `scaled` is for tests that cannot wait."""

    ceiling_tokens: int = 300_000
    flush_headroom_tokens: int = 60_000
    window_min_tokens: int = 128_000
    """Below this nothing useful fits between a hand-off and a flush; an unknown window counts as this."""
    handoff_max_bytes: int = 16 * 1024
    start_ms: int = 60_000
    """For a child to answer its first control request, and to tell its window."""
    flush_grace_ms: int = 900_000
    escalate_flush_ms: int = 120_000
    """After each step of the ladder, where a turn is cut short that nobody asked to stop: a flush that overran, a stall."""
    escalate_stop_ms: int = 10_000
    """The same, where somebody asked for the end or nothing runs."""
    stall_ms: int = 600_000
    """Without a line, while the API is waited for."""
    tool_limit_max_ms: int = 3_600_000
    """The most that is believed of a tool's own limit."""
    exit_drain_ms: int = 2_000
    """To read what is left after its exit; and for it to exit after its streams closed."""
    divisor: int = 1
    """What the spans were divided by; a tool's own limit is divided by it too."""
    run_limit_ms: int = 86_400_000
    """A run is asked for its hand-off after a day, whatever it is at: the bound that every run has."""

    def ceiling(self, window_tokens: int | None) -> int:
        """The prefix at which the flush is asked for."""
        window = self.window_min_tokens if window_tokens is None else window_tokens
        return min(self.ceiling_tokens, window - self.flush_headroom_tokens)

    def scaled(self, divisor: int) -> "Constants":
        """The same with every span of time divided; never below a millisecond."""
        spans = {name: max(getattr(self, name) // divisor, 1) for name in self.__slots__ if name.endswith("_ms")}
        others = {name: getattr(self, name) for name in self.__slots__ if not name.endswith("_ms")}
        return Constants(**spans, **{**others, "divisor": self.divisor * divisor})
