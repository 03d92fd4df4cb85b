"""Wiring: the child of the `local` provider: llama.cpp's own HTTP server with one small model, for one persona.

Started as `python -m mind_body.model.local_server GGUF --window N --threads N`. It prints one line of JSON with its address and the
key that it asks for, then nothing more. It ends when its standard input does, which is when its parent is gone, also by kill -9:
no other process holds that pipe's writing end (host/process.py, rule 2).
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from mind_body.ids import new_secret

BATCH_TOKENS = 512
"""Tokens read at once; more costs memory and is no faster on a few cores."""


def main() -> None:
    """Load, serve, and wait for the end of standard input."""
    options = _read_arguments()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the parent, which ends this one
    announce = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the library prints goes to the journal
    key = new_secret()
    server = _serve(options.gguf, options.window, options.threads, key)
    print(json.dumps({"base_url": f"{server.listening_address}/v1", "key": key}), file=announce, flush=True)
    announce.close()
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)  # llama.cpp's threads have nothing to save


def _serve(gguf: Path, window: int, threads: int, key: str) -> Any:
    import xllamacpp  # noqa: PLC0415 - 34 MB that only this process needs

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.model_alias = {gguf.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.verbosity = 0
    # One slot, so that the next turn of a session finds its prefix; the prompts of other sessions wait in a small cache.
    params.n_parallel = 1
    params.cache_ram_mib = 128
    params.n_ctx = window
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    # Keys and values in 8 bits: 8,192 tokens of SmolLM2 take 100 MB instead of 190, at the same speed.
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 2
    return xllamacpp.Server(params)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="local_server")
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
