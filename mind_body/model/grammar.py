"""Rule: the small schema as a llama.cpp grammar: every byte outside the sentences fixed, and at most two sentences.

A server makes a grammar from `response_format` by itself, and allows white space between the marks. A model of 135 million
parameters loses its way in that space: asked for her name it wrote line breaks around "Saying"; with fixed marks it answers. It
fills in forms (`{your name here}`), so brackets of that kind are not among its letters. Nor does it know when to stop: left alone
it says one thing until its output cap, and a cut-off answer is lost.
"""

import json
from typing import Any

SENTENCES = 2
SENTENCE_MAX = 100
"""Characters: even one token each, as a row of digits is, they stay below the output cap."""


def render_say_grammar(schema: dict[str, Any]) -> str | None:
    """GBNF for an object of one string, `{"say": "…"}`; None for any other schema, which the server must make something of.

    What the grammar allows fits the schema: two sentences, the blank between them, each with its marks at the end, are together
    no longer than `maxLength`.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return None
    name, shape = next(iter(properties.items()))
    longest = shape.get("maxLength") if isinstance(shape, dict) and shape.get("type") == "string" else None
    if not isinstance(longest, int) or longest < 2 * SENTENCES + 1:
        return None
    opening = json.dumps(f'{{"{name}": "')
    middle = min((longest - SENTENCES + 1) // SENTENCES, SENTENCE_MAX) - 2
    return "\n".join(
        [
            f'root ::= {opening} sentence (" " sentence){{0,{SENTENCES - 1}}} "\\"}}"',
            f"sentence ::= first rest{{0,{middle}}} [.!?]",
            r'first ::= [^"\\.!?{}<>\x00-\x20\x7F]',
            r'rest ::= [^"\\.!?{}<>\x00-\x1F\x7F]',
            "",
        ]
    )
