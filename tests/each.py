"""Wiring: one test over many things, where a test for each would cost more than what it checks."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def each(things: Callable[[], Iterable[T]], name: Callable[[T], str] = str) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Check every one, and tell of all that fail by name. `things` is asked when the test runs: collecting costs nothing."""

    def make_test(check: Callable[[T], None]) -> Callable[[], None]:
        def test() -> None:
            count, faults = 0, []
            for thing in things():
                count += 1
                try:
                    check(thing)
                except AssertionError as error:
                    faults.append(f"{name(thing)}: {error}")
            assert count, "there is nothing to check"
            assert not faults, f"{len(faults)} of {count}:\n" + "\n".join(faults)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return make_test


def spread(check: Callable[..., None]) -> Callable[[tuple[Any, ...]], None]:
    """Of a check that takes several arguments, one that takes them as a tuple."""

    def checked(thing: tuple[Any, ...]) -> None:
        check(*thing)

    checked.__name__, checked.__doc__, checked.__module__ = check.__name__, check.__doc__, check.__module__
    return checked
