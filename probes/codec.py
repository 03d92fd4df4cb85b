"""Wiring: how fast is the codec of the CLI's lines, and does its memory stay flat?

    .venv/bin/python probes/codec.py [--rounds 15] [--gigabytes 1.0]

`recorded/self-stream.jsonl` is what the real CLI printed in a session of a Self: partial messages, tool results, a subagent, an
interrupt. `ratio` is the codec's bytes per second over those of `json.loads` line by line on the same stream: the median of pairs,
measured in turns. `memory_growth_mb` is what the process grows by while so many gigabytes go through one codec, after the first
tenth.
"""

import argparse
import io
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mind_body.model.lines import Unknown
from mind_body.model.stream import NEED_DATA, StreamCodec

STREAM = Path(__file__).parent / "recorded" / "self-stream.jsonl"
CHUNK = 65_536
"""What a pipe holds, and so the most that one read of it brings."""
ROUND_BYTES = 8_000_000


def read_by_codec(stream: bytes) -> int:
    codec, events = StreamCodec(), 0
    for start in range(0, len(stream), CHUNK):
        codec.feed(stream[start : start + CHUNK])
        while codec.next_event() is not NEED_DATA:
            events += 1
    return events


def read_by_json(stream: bytes) -> int:
    events = 0
    for line in io.BytesIO(stream):
        json.loads(line)
        events += 1
    return events


def seconds(read: Callable[[bytes], int], stream: bytes) -> float:
    began = time.perf_counter()
    read(stream)
    return time.perf_counter() - began


def measure_speed(recorded: bytes, rounds: int) -> dict[str, float]:
    stream = recorded * max(ROUND_BYTES // len(recorded), 1)
    assert read_by_codec(stream) == read_by_json(stream)
    pairs = [(seconds(read_by_codec, stream), seconds(read_by_json, stream)) for _ in range(rounds)]
    ours, plain = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {
        "ratio": round(statistics.median(json_s / codec_s for codec_s, json_s in pairs), 3),
        "codec_mb_per_s": round(len(stream) / ours / 1e6, 1),
        "json_mb_per_s": round(len(stream) / plain / 1e6, 1),
    }


def measure_memory(recorded: bytes, gigabytes: float) -> dict[str, float]:
    codec, process = StreamCodec(), psutil.Process()
    fed, first, whole = 0, 0, int(gigabytes * 1e9)
    while fed < whole:
        for start in range(0, len(recorded), CHUNK):
            codec.feed(recorded[start : start + CHUNK])
            while codec.next_event() is not NEED_DATA:
                pass
        fed += len(recorded)
        if not first and fed >= whole // 10:
            first = process.memory_info().rss
    return {"gigabytes": gigabytes, "memory_growth_mb": round((process.memory_info().rss - first) / 1e6, 2)}


def count_unknown(recorded: bytes) -> int:
    codec, unknown = StreamCodec(), 0
    codec.feed(recorded)
    while (event := codec.next_event()) is not NEED_DATA:
        unknown += isinstance(event, Unknown)
    return unknown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()
    recorded = STREAM.read_bytes()
    told = {"bytes": len(recorded), "lines": recorded.count(b"\n"), "unknown": count_unknown(recorded)}
    print(json.dumps({**told, **measure_speed(recorded, options.rounds), **measure_memory(recorded, options.gigabytes)}))


if __name__ == "__main__":
    main()
