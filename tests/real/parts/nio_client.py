"""Wiring: a Matrix client of somebody else's making (matrix-nio), as a program of its own.

    python -m tests.real.parts.nio_client HOMESERVER USER_ID TOKEN

One JSON array per line on standard input is a call: [method, keyword arguments], of nio's own AsyncClient. Each line on standard
output is {"answer": …} to the call before, or {"seen": …}: something that came by sync. It ends with its standard input.
"""

import asyncio
import json
import sys
from typing import Any

import nio


def _tell(kind: str, what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({kind: what}) + "\n")
    sys.stdout.flush()


def _on_message(room: nio.MatrixRoom, event: nio.RoomMessage) -> None:
    about = {"room": room.room_id, "sender": event.sender, "event_id": event.event_id}
    _tell("seen", {"what": "message", **about, "content": event.source["content"]})


def _on_typing(room: nio.MatrixRoom, event: nio.TypingNoticeEvent) -> None:
    _tell("seen", {"what": "typing", "room": room.room_id, "users": event.users})


def _on_receipt(room: nio.MatrixRoom, event: nio.ReceiptEvent) -> None:
    for receipt in event.receipts:
        about = {"room": room.room_id, "sender": receipt.user_id, "event_id": receipt.event_id}
        _tell("seen", {"what": "receipt", **about, "kind": receipt.receipt_type})


async def _obey(client: nio.AsyncClient) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        method, words = json.loads(line)
        if "preset" in words:
            words["preset"] = nio.RoomPreset(words["preset"])
        answer = await getattr(client, method)(**words)
        _tell(
            "answer",
            {"kind": type(answer).__name__, "room": getattr(answer, "room_id", ""), "event": getattr(answer, "event_id", "")},
        )


async def main(homeserver: str, user_id: str, token: str) -> None:
    client = nio.AsyncClient(homeserver, user_id)
    client.restore_login(user_id, "NIO", token)
    client.add_event_callback(_on_message, nio.RoomMessage)
    client.add_ephemeral_callback(_on_typing, nio.TypingNoticeEvent)
    client.add_ephemeral_callback(_on_receipt, nio.ReceiptEvent)
    syncing = asyncio.create_task(client.sync_forever(timeout=10_000, full_state=True))
    try:
        await _obey(client)
    finally:
        syncing.cancel()
        await asyncio.gather(syncing, return_exceptions=True)
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
