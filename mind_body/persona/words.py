"""Door: the files that make her system part: doctrine and `persona/NAME.md`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mind_body.errors import ConfigError
from mind_body.home import Home
from mind_body.ids import digest
from mind_body.persona.prompt import DOCTRINE_MAX, Persona, render_instructions
from mind_body.persona.reply import reply_schema
from mind_body.persona.work_acts import acts_of
from mind_body.settings import MindConfig


@dataclass(frozen=True, slots=True)
class Words:
    """What a session is opened under."""

    persona: str
    instructions: str
    instructions_digest: str
    schema: dict[str, Any]
    schema_json: str
    schema_digest: str


def read_words(home: Home, config: MindConfig, me: Persona) -> Words:
    """The system part and the schema as they would be for a session that opens now. Raises ConfigError."""
    persona_file = home.persona_file(me.name)
    doctrine = [_read(persona_file.parent / name) for name in config.persona.doctrine]
    size = sum(len(text.encode()) for text in doctrine)
    if size > DOCTRINE_MAX:
        raise ConfigError(f"the doctrine of '{me.name}' is {size} bytes, {DOCTRINE_MAX} is the most; shorten or drop a file")
    persona = _read(persona_file)
    acts = acts_of(config)
    instructions = render_instructions(me, doctrine, persona, acts, workspaces=sorted(config.self.workspaces))
    schema = reply_schema(acts, small=me.small)
    schema_json = json.dumps(schema, separators=(",", ":"))
    return Words(persona, instructions, digest(instructions), schema, schema_json, digest(schema_json))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"{path} does not exist; it says who she is, in Markdown") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
