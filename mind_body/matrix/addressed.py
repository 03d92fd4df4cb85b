"""Rule: whether a message addresses her, and why (cases W1).

1. A reply to a message of hers addresses her, whatever else it says: answering somebody is speaking to them.
2. Where the sender's client wrote `m.mentions`, that decides alone: she is in `user_ids`, or she is not mentioned. `room: true`
   (@room) by itself is not about her: she would answer every announcement.
3. Else, in what a reader sees (the HTML where there is any, else the plain body), outside code and quotes:
   a link to her user id (a pill; its label does not matter), her full user id, or her display name as a word of its own.
4. A name inside a URL, an e-mail address, another user id, a room alias, a file name or a longer word is no mention. The label of
   a pill for somebody else is not text. The body of a picture or file is its file name.
5. Ids are case-sensitive and compared exactly (D7); a display name is compared as people type it, without regard to case.
6. Everything takes time linear in the message's length: its writer is a stranger.
"""

import functools
import re
import unicodedata
from dataclasses import dataclass
from html import unescape
from typing import Literal
from urllib.parse import unquote

from mind_body.matrix.events import Edit, Message

How = Literal["reply", "mention", "pill", "user id", "name", "none"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether she is meant; `reason` completes the sentence "it is mail because …" or "it is context because …"."""

    addressed: bool
    how: How
    reason: str


def judge_address(message: Message | Edit, *, user_id: str, name: str, replies_to_her: bool) -> Verdict:
    """Total. `name` is her display name in the room, empty for none; `replies_to_her` says whose message it answers."""
    if replies_to_her:
        return Verdict(True, "reply", "it replies to a message of hers")
    if message.mentions is not None:
        if user_id in message.mentions.user_ids:
            return Verdict(True, "mention", "it mentions her")
        return Verdict(False, "none", "it mentions the whole room" if message.mentions.room else "it mentions others or nobody")
    return _judge_text(_visible(message), user_id, name or user_id[1:].partition(":")[0])


@dataclass(frozen=True, slots=True)
class _Visible:
    text: str
    """What a reader sees, without code, quotes and the labels of pills."""
    links: tuple[str, ...]


def _judge_text(seen: _Visible, user_id: str, name: str) -> Verdict:
    if any(_linked_user(link) == user_id for link in (*seen.links, *_URL.findall(seen.text))):
        return Verdict(True, "pill", "it links to her user id")
    plain = _URL.sub(" ", seen.text)
    if any(found.rstrip(".:,;") == user_id for found in _USER_ID.findall(plain)):
        return Verdict(True, "user id", "it names her user id")
    if name and _name_pattern(name).search(_normal(_ADDRESSES.sub(" ", plain))):
        return Verdict(True, "name", "it names her")
    return Verdict(False, "none", "it does not name her")


def _visible(message: Message | Edit) -> _Visible:
    if message.formatted_body:
        return _read_html(message.formatted_body)
    if message.msgtype not in {"m.text", "m.emote", "m.notice"}:
        return _Visible("", ())
    return _Visible(_without_code(message.body), ())


def _without_code(body: str) -> str:
    """A plain body without fenced blocks, quoted lines and inline code, as its writer would mean them in Markdown."""
    kept: list[str] = []
    fence = ""
    for line in body.split("\n"):
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in {"```", "~~~"}:
            fence = mark
        elif not line.lstrip().startswith(">"):
            kept.append(_INLINE_CODE.sub(" ", line))
    return "\n".join(kept)


def _read_html(html: str) -> _Visible:
    """Text and links. Not `html.parser`: 64 KB of `<a b` take it 20 s. Unclosed elements run to the end, as they do on a screen."""
    text: list[str] = []
    links: list[str] = []
    silent: list[str] = []
    in_pill = False
    position = 0
    for tag in _TAG.finditer(html := _without_comments(html)):
        if not silent and not in_pill:
            text.append(unescape(html[position : tag.start()]))
        position = tag.end()
        closing, name = bool(tag[1]), tag[2].lower()
        if name in _BREAKING or name in _SILENT:
            text.append("\n")
        if name == "a":
            link = "" if closing or silent else _link(tag[3])
            links.append(link)
            in_pill = _linked_user(link) is not None
        elif name in _SILENT and not closing:
            silent.append(name)
        elif silent and silent[-1] == name:
            silent.pop()
    if not silent and not in_pill:
        text.append(unescape(html[position:]))
    return _Visible("".join(text), tuple(links))


def _without_comments(html: str) -> str:
    kept: list[str] = []
    position = 0
    while (start := html.find("<!--", position)) >= 0:
        kept.append(html[position:start])
        end = html.find("-->", start)
        position = end + len("-->") if end >= 0 else len(html)
    return "".join((*kept, html[position:]))


def _link(attributes: str) -> str:
    found = _HREF.search(attributes)
    return unescape(found[1] or found[2] or found[3] or "") if found else ""


_SILENT = frozenset({"code", "pre", "blockquote", "mx-reply", "script", "style"})
_BREAKING = frozenset({"p", "br", "div", "ul", "ol", "li", "table", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "hr"})
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]{0,31})([^<>]*)>")
_HREF = re.compile(r"(?:^|\s)href\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
# Quantifiers over one class each, none nested: linear.
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,15}://|www\.|mailto:|matrix:)[^\s<>\"]+", re.IGNORECASE)
_INLINE_CODE = re.compile(r"(`+)[^`\n]+\1")
_USER_ID = re.compile(r"(?<![\w@./#!$+=-])@[^\s:@<>()\[\]{},;\"']{1,255}:[\w.:\[\]-]{1,255}")
_ADDRESSES = re.compile(
    r"[@#!$][^\s:@<>]{1,255}:[\w.:\[\]-]+"  # user ids, room aliases, room ids
    r"|[\w.+%-]{1,64}@[\w-]+(?:\.[\w-]+)+"  # e-mail addresses
)
_MATRIX_TO = re.compile(r"https?://matrix\.to/#/([^/?#]+)/?(?:\?.*)?", re.IGNORECASE)
_MATRIX_URI = re.compile(r"matrix:u/([^/?#]+)(?:\?.*)?", re.IGNORECASE)


def _linked_user(link: str) -> str | None:
    """The user id that a pill's link names (spec: matrix.to navigation, `matrix:` URIs), None for every other link."""
    link = link.strip().rstrip(").,;:!?'")
    if (found := _MATRIX_TO.fullmatch(link)) and (user := unquote(found[1])).startswith("@"):
        return user
    if found := _MATRIX_URI.fullmatch(link):
        return "@" + unquote(found[1])
    return None


@functools.lru_cache(maxsize=4096)
def _name_pattern(name: str) -> re.Pattern[str]:
    """The name as words of their own: no letter, hyphenated part, dotted part (`ada.py`) or path (`/ada`) attached to it."""
    words = r"\s+".join(re.escape(word) for word in _normal(name).split()) or r"(?!)"
    return re.compile(rf"(?<![\w/\\#$&])(?<!\w[-.]){words}(?![\w])(?![-.]\w)")


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
