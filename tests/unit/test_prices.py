from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.data import config_dir, units_dir
from mind_body.errors import ConfigError
from mind_body.home import directory_home
from mind_body.model.price_file import read_prices
from mind_body.model.prices import bare_name, price
from mind_body.model.session import Usage

BOOK = read_prices()
KNOWN = [name for entry in BOOK.model for name in entry.names]
tokens = st.integers(0, 2_000_000)
usages = st.builds(Usage, tokens, tokens, tokens, tokens, tokens)
models = st.sampled_from([*KNOWN, "nobody-heard-of-this"])


def test_the_shipped_prices_are_found_and_dated() -> None:
    assert (config_dir() / "prices.toml").exists()
    assert units_dir().name == "units"
    assert BOOK.as_of.startswith("20")
    assert BOOK.source.startswith("https://")


def test_a_million_tokens_of_each_kind_cost_what_the_list_says() -> None:
    million = 1_000_000
    assert price(BOOK, "claude-opus-4-5-20251101", Usage(uncached=million)).micro_usd == 5_000_000
    assert price(BOOK, "claude-opus-5-5", Usage(cache_read=million)).micro_usd == 200_000
    assert price(BOOK, "claude-sonnet-4-5", Usage(cache_write_5m=million)).micro_usd == 3_750_000
    assert price(BOOK, "claude-haiku-4-5", Usage(cache_write_1h=million)).micro_usd == 2_000_000
    assert price(BOOK, "claude-fable-5-1", Usage(output=million)).micro_usd == 50_000_000


def test_a_model_without_a_price_counts_as_the_dearest_and_says_so() -> None:
    priced = price(BOOK, "nobody-heard-of-this", Usage(uncached=100, output=10))
    assert not priced.known
    assert priced.micro_usd == max(price(BOOK, name, Usage(uncached=100, output=10)).micro_usd for name in KNOWN)
    assert priced.counted_as in KNOWN


@pytest.mark.parametrize("instance", ["local:SmolLM2", "openai:http://127.0.0.1:11434/v1", "openai:http://[::1]:80/v1"])
def test_an_unpriced_model_on_this_machine_costs_nothing(instance: str) -> None:
    priced = price(BOOK, "smollm2", Usage(uncached=1000, output=1000), instance)
    assert (priced.micro_usd, priced.known) == (0, True)


def test_a_priced_model_behind_a_proxy_on_this_machine_keeps_its_price() -> None:
    priced = price(BOOK, "claude-opus-5", Usage(output=1_000_000), "openai:http://127.0.0.1:4000/v1")
    assert priced.micro_usd == 25_000_000


def test_a_server_elsewhere_is_not_free() -> None:
    assert price(BOOK, "smollm2", Usage(output=1), "openai:https://127.0.0.1.example.org/v1").micro_usd > 0


def test_a_long_prompt_is_charged_at_its_own_rate() -> None:
    short, long = Usage(uncached=100_000), Usage(uncached=100_001)
    assert price(BOOK, "claude-haiku-5-5", short).micro_usd == 10_000
    assert price(BOOK, "claude-haiku-5-5", long).micro_usd == 50_001


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("anthropic/claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("llama3:8b", "llama3"),
        ("claude-haiku-4-5-latest", "claude-haiku-4-5"),
        ("", ""),
    ],
)
def test_a_name_is_compared_without_its_decoration(written: str, bare: str) -> None:
    assert bare_name(written) == bare


@given(models, usages)
def test_a_call_is_never_charged_below_its_exact_price_nor_a_whole_micro_usd_above(model: str, usage: Usage) -> None:
    priced = price(BOOK, model, usage)
    entry = next(e for e in BOOK.model if priced.counted_as in e.names and (not e.above or usage.prefix > e.above))
    exact = (
        Decimal(usage.uncached) * entry.input
        + Decimal(usage.cache_read) * entry.read
        + Decimal(usage.cache_write_5m) * entry.write_5m
        + Decimal(usage.cache_write_1h) * entry.write_1h
        + Decimal(usage.output) * entry.output
    )
    assert exact <= priced.micro_usd < exact + 1


@given(usages, usages)
def test_more_tokens_never_cost_less(usage: Usage, more: Usage) -> None:
    for model in ("claude-haiku-5-5", "claude-opus-5", "nobody-heard-of-this"):
        assert price(BOOK, model, usage).micro_usd <= price(BOOK, model, usage.plus(more)).micro_usd


def test_the_operators_own_file_is_read_instead(tmp_path: Path) -> None:
    home = directory_home(tmp_path, tmp_path / "run")
    own = (config_dir() / "prices.toml").read_text().replace("input = 5\n", "input = 7\n")
    (tmp_path / "prices.toml").write_text(own)
    assert price(read_prices(home), "claude-opus-5", Usage(uncached=3)).micro_usd == 21


def test_a_misspelt_price_names_the_file_and_the_key(tmp_path: Path) -> None:
    home = directory_home(tmp_path, tmp_path / "run")
    (tmp_path / "prices.toml").write_text((config_dir() / "prices.toml").read_text().replace("write_1h", "write_1hour"))
    with pytest.raises(ConfigError, match=r"prices\.toml.*`model.0.write_1hour` is not a setting"):
        read_prices(home)


def test_a_book_without_models_is_refused(tmp_path: Path) -> None:
    home = directory_home(tmp_path, tmp_path / "run")
    (tmp_path / "prices.toml").write_text('as_of = "2026-11-30"\nmodel = []\n')
    with pytest.raises(ConfigError, match="model"):
        read_prices(home)
