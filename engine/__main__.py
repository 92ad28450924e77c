"""`python -m engine`: build the engine from the command line, serve, end promptly on SIGTERM and SIGINT."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from engine.app import Engine, build_app
from engine.backends.script import ScriptBackend
from engine.canvas_request import Limits
from engine.codec import Codec
from engine.errors import EngineError
from engine.faults import Faults
from engine.gguf_model import ModelNotFound, find_model
from engine.latency import Gate
from engine.metrics import Metrics
from engine.options import Options, parse_options
from engine.prefix_cache import PrefixCache
from engine.requests import Dialect
from engine.responses import TokenNames, Writer
from engine.script.rules import ScriptError, load_script
from engine.service import Service
from engine.tokenizer import UnsupportedTokenizer, ensure_folder
from engine.work import Backend

_SHUTDOWN_SECONDS = 0.2
_TROUBLE = (ModelNotFound, UnsupportedTokenizer, ScriptError, EngineError, OSError)


async def build_backend(options: Options, codec: Codec) -> Backend:
    """The backend that the command line names. Raises one of `_TROUBLE`."""
    if options.backend == "script":
        return ScriptBackend(load_script(Path(options.source)), codec, options.seed, options.max_model_len)
    if options.backend == "upstream":
        from engine.backends.upstream import UpstreamBackend

        return await UpstreamBackend.connect(options.source, codec, options.max_model_len)
    # Only here: loading llama.cpp's library takes longer than starting everything else.
    from engine.backends.llama import LlamaBackend

    return LlamaBackend(find_model(options.source), codec, options.max_model_len)


def build_engine(options: Options, codec: Codec, backend: Backend) -> Engine:
    """Put the parts together."""
    metrics = Metrics()
    model = options.model_name or backend.name
    limits = Limits(
        vocabulary=codec.vocabulary,
        canvas=options.canvas,
        context=backend.context,
        logprobs=options.max_logprobs,
        samples=options.engine_samples,
        full_width_only=options.full_width_only,
    )
    batch = min(options.profile.batch, backend.slots or options.profile.batch)
    service = Service(
        backend=backend,
        writer=Writer(model, codec, TokenNames()),
        gate=Gate(options.profile, metrics, batch, options.max_queued),
        cache=PrefixCache(options.cache_blocks),
        metrics=metrics,
        liar=options.liar,
    )
    dialect = Dialect(model, codec, limits, options.liar != "ignore-canvas", options.parser)
    faults = Faults(options.faults, options.seed)
    return Engine(service, dialect, faults, lenient=options.liar is not None, metrics=options.metrics)


async def serve(options: Options) -> None:
    """Serve until a signal comes."""
    model = options.source if options.backend == "llama" else None
    codec = Codec(options.tokenizer or ensure_folder(find_model(model)))
    backend = await build_backend(options, codec)
    engine = build_engine(options, codec, backend)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # A client that goes away cancels its handler: a hang or a generation ends with it.
    runner = web.AppRunner(build_app(engine), access_log=None, handler_cancellation=True,
                           shutdown_timeout=_SHUTDOWN_SECONDS)  # fmt: skip
    await runner.setup()
    # As many waiting connections as uvicorn takes, which serves vLLM: with aiohttp's 128, a burst of new
    # connections overflows the queue, and those that the kernel dropped are reset when they send.
    site = web.TCPSite(runner, options.host, options.port, backlog=2048)
    await site.start()
    port = runner.addresses[0][1]
    what = f"{options.backend} backend, model {engine.dialect.model}, canvas {options.canvas}"
    sys.stdout.write(f"engine ready: http://{options.host}:{port} ({what}, profile {options.profile_name})\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()
    await backend.close()


def main() -> int:
    """The command; the exit status."""
    options = parse_options()
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    try:
        uvloop.run(serve(options))
    except _TROUBLE as error:
        sys.stderr.write(f"engine: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # A prefill inside llama.cpp cannot be interrupted, and a normal exit would wait for its thread.
    os._exit(status)
