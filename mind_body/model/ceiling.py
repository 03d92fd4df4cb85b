"""Rule: how many tokens some text comes to at most, for the reservation of the call that sends it.

Natural text has four bytes and more to a token, and three are counted. Outside ASCII each byte counts as one: an emoji of four
bytes can be three tokens or four.
"""

from collections.abc import Iterable

BYTES_PER_TOKEN = 3
_NOT_ASCII = bytes(range(128, 256))


def count_tokens(texts: Iterable[bytes]) -> int:
    """At most so many in all of it."""
    plain = other = 0
    for text in texts:
        ascii_only = len(text.translate(None, delete=_NOT_ASCII))
        plain, other = plain + ascii_only, other + len(text) - ascii_only
    return plain // BYTES_PER_TOKEN + other
