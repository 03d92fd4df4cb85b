"""W1's bodies with expected verdicts, for the unit table and for the test that really sends them."""

from dataclasses import dataclass
from typing import Any

from mind_body.matrix.addressed import How


@dataclass(frozen=True)
class Body:
    """`{her}` is her user id, `{enc}` percent-encoded, `{bare}` without @, `{upper}` in capitals; her name is Ada."""

    id: str
    how: How
    body: str
    html: str | None = None
    mentions: dict[str, Any] | None = None
    msgtype: str = "m.text"

    @property
    def addressed(self) -> bool:
        return self.how != "none"

    def content(self, her: str) -> dict[str, Any]:
        def fill(text: str) -> str:
            local, _, server = her[1:].partition(":")
            encoded = f"%40{local}%3A{server}"
            return (
                text.replace("{her}", her)
                .replace("{enc}", encoded)
                .replace("{bare}", her[1:])
                .replace("{upper}", f"@{local.upper()}:{server}")
            )

        content: dict[str, Any] = {"msgtype": self.msgtype, "body": fill(self.body)}
        if self.html is not None:
            content |= {"format": "org.matrix.custom.html", "formatted_body": fill(self.html)}
        if self.mentions is not None:
            ids = [fill(user) for user in self.mentions.get("user_ids", [])]
            content["m.mentions"] = {**self.mentions, **({"user_ids": ids} if ids else {})}
        return content


W1_BODIES = [
    Body("mentioned", "mention", "hello", mentions={"user_ids": ["{her}"]}),
    Body("named but not mentioned", "none", "Ada said so yesterday", mentions={}),
    Body("another is mentioned", "none", "Ada, no: Bob", mentions={"user_ids": ["@bob:example.org"]}),
    Body("the room is mentioned", "none", "@room lunch", mentions={"room": True}),
    Body("pill", "pill", "Ada: hi", '<a href="https://matrix.to/#/{her}">Ada</a>: hi'),
    Body("pill without text", "pill", "hi", 'hi<a href="https://matrix.to/#/{her}"></a>'),
    Body("pill with another label", "pill", "boss: hi", '<a href="https://matrix.to/#/{enc}?via=example.org">boss</a>: hi'),
    Body("matrix uri", "pill", "hi", '<a href="matrix:u/{bare}?action=chat">x</a>'),
    Body("bare pill link", "pill", "https://matrix.to/#/{her} hi"),
    Body("pill of somebody called Ada", "none", "Ada: hi", '<a href="https://matrix.to/#/@ada2:example.org">Ada</a>: hi'),
    Body(
        "link to a message",
        "none",
        "see",
        '<a href="https://matrix.to/#/!r:example.org/$e">it</a>',
    ),
    Body("user id", "user id", "what does {her} think?"),
    Body("user id before a colon", "user id", "{her}: hi"),
    Body("user id of a longer server", "none", "{her}.uk is somebody else"),
    Body("user id in other letters", "none", "{upper} is somebody else"),
    Body("name", "name", "Ada, are you there?"),
    Body("name in small letters", "name", "thanks ada!"),
    Body("name with an at", "name", "@Ada hi"),
    Body("name in bold", "name", "**Ada** hi", "<strong>Ada</strong> hi"),
    Body("name in another word", "none", "my armada sails to Canada, adamant"),
    Body("name in a hyphenated word", "none", "an ada-like language"),
    Body("name in a file", "none", "it is in ada.py and /usr/lib/ada"),
    Body("name in a url", "none", "read https://example.org/ada?x=Ada first"),
    Body("name in an e-mail", "none", "write to ada@example.org or hello@ada.example.org"),
    Body("name in another user id", "none", "ask @ada:elsewhere.example or #ada:example.org"),
    Body("name in code", "none", "run `ada --help`, that is\n```sh\nada build\n```\nand wait"),
    Body("name in html code", "none", "run ada", "run <code>ada</code><pre><code>ada build</code></pre>"),
    Body("name in a quote", "none", "> Ada knows\n\nwho says that?"),
    Body("name in an html quote", "none", "who says that?", "<blockquote>Ada knows</blockquote>who says that?"),
    Body("name after a quote", "name", "> who knows?\n\nAda knows"),
    Body("name of a picture", "none", "Ada.png", msgtype="m.image"),
    Body("nobody", "none", "good morning"),
]
