"""Rule: the small schema as a llama.cpp grammar, with every byte outside the sentence fixed.

A server makes a grammar from `response_format` by itself, and allows white space between the marks. A model of 135 million
parameters loses its way in that space: asked for her name it wrote line breaks around "Saying"; with fixed marks it answers.
"""

import json
from typing import Any

_CHARACTER = r'[^"\\\x00-\x1F\x7F]'


def render_say_grammar(schema: dict[str, Any]) -> str | None:
    """GBNF for an object of one string, `{"say": "…"}`; None for any other schema, which the server must make something of."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return None
    name, shape = next(iter(properties.items()))
    longest = shape.get("maxLength") if isinstance(shape, dict) and shape.get("type") == "string" else None
    if not isinstance(longest, int) or longest < 1:
        return None
    opening = json.dumps(f'{{"{name}": "')
    return "\n".join(
        [
            f'root ::= {opening} first rest{{0,{longest - 1}}} "\\"}}"',
            r'first ::= [^"\\\x00-\x20\x7F]',
            f'rest ::= {_CHARACTER} | "\\\\" ["\\\\]',
            "",
        ]
    )
