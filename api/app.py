"""The API's app factory."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from api.doors import (
    audits,
    batches,
    chat,
    decisions,
    deliveries,
    engines,
    jobs,
    keys,
    metrics,
    models,
    operations,
    pages,
    passthrough,
    plans,
    systemone,
)
from api.keyring import LOOK_EVERY_S as LOOK_AT_KEYS_EVERY_S
from api.keyring import Keyring
from api.metrics import ApiMetrics, CountRequests
from api.openapi import document
from api.origins import guarded
from api.problems import (
    NothingMore,
    tell,
    tell_fault,
    tell_http_error,
    tell_invalid,
    tell_nobody,
    tell_nothing,
)
from api.refusals import Refusal
from api.relay import Relays
from api.service import WATCH_POOL_EVERY_S, WATCH_QUEUE_EVERY_S, Service
from api.settings import ApiSettings
from api.waiting import LOOK_EVERY_S, Waiting
from workers.background import keep_doing
from workers.celery_app import make_celery
from workers.dispatch import Dispatcher
from workers.store.audits import Audits
from workers.store.batches import Batches
from workers.store.decisions import Decisions
from workers.store.deliveries import Deliveries
from workers.store.engines import Engines
from workers.store.images import Images
from workers.store.keys import Keys
from workers.store.listening import RECONNECT_PAUSE_S
from workers.store.names import Names
from workers.store.rates import Rates
from workers.store.store import Store, StoreError, connect
from workers.tokenizers import load_vocabulary, settle_memory
from workers.tracing import make_tracer

MODELS = (*systemone.MODELS, *decisions.MODELS, *chat.MODELS)
"""What the decision doors name in the OpenAPI document."""


def make_app(settings: ApiSettings) -> FastAPI:
    """The application of one API process; what it needs is opened with it and closed with it."""

    counted = ApiMetrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        vocabulary = load_vocabulary(settings.tokenizer, canvas=settings.canvas, context=settings.context)
        settle_memory()
        redis = connect(settings)
        store = Store(redis, settings)
        dispatcher = Dispatcher(make_celery(settings), settings)
        decisions, tracer = Decisions(store, settings, counted.decisions), make_tracer("canvass-api")
        waiting = Waiting(redis, decisions, store.key("answers", uuid.uuid4().hex))
        names, keyring = Names(store), Keyring(Keys(store), Rates(store, redis), settings)
        images = Images(store, settings)
        service = Service(
            settings,
            store,
            decisions,
            dispatcher,
            waiting,
            names,
            keyring,
            images,
            vocabulary,
            counted,
            tracer,
        )
        counted.watch(waiting)
        app.state.service = service
        app.state.audits = Audits(store, settings)
        app.state.batches = Batches(store, settings)
        app.state.deliveries = Deliveries(store, settings)
        app.state.engines = Engines(store)
        app.state.relays = relays = Relays(settings.deadline_s)
        background = [
            asyncio.create_task(keep_doing(work, every_s))
            for work, every_s in (
                (waiting.listen, RECONNECT_PAUSE_S),
                (waiting.look, LOOK_EVERY_S),
                (service.look_at_pool, WATCH_POOL_EVERY_S),
                (service.look_at_queue, WATCH_QUEUE_EVERY_S),
                (keyring.look, LOOK_AT_KEYS_EVERY_S),
            )
        ]
        yield
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await relays.close()
        tracer.close()
        dispatcher.close()
        await store.close()
        await redis.aclose()

    app = FastAPI(title="Canvass", lifespan=lifespan)
    app.add_middleware(guarded, allowed=settings.allowed_origins)
    app.add_middleware(CountRequests, metrics=counted)
    # The pass-through comes last under `/v1/`: it takes whatever no other route does. Pages come last of all.
    native = (audits, batches, deliveries, engines, jobs, keys, metrics, models, operations, plans)
    for door in (systemone, decisions, chat, *native, passthrough):
        app.include_router(door.router)
    if settings.pages is not None:
        app.include_router(pages.router(settings.pages))
    app.openapi = lambda: document(app, MODELS)  # type: ignore[method-assign]
    for refused in (Refusal, StoreError):
        app.add_exception_handler(refused, tell)
    app.add_exception_handler(RequestValidationError, tell_invalid)
    app.add_exception_handler(HTTPException, tell_http_error)
    app.add_exception_handler(ClientDisconnect, tell_nobody)
    app.add_exception_handler(NothingMore, tell_nothing)
    app.add_exception_handler(Exception, tell_fault)
    return app
