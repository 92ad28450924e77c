"""What the queue's client does to a message must never end a decision: it is stored, and published again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from redis import Redis

from client.stack import Stack
from workers.celery_app import INTERACTIVE, make_celery
from workers.dispatch import Dispatcher, PublishError
from workers.settings import Settings

PREFIX = "canvass-publishing"


@pytest.fixture
def dispatcher(stack: Stack) -> Iterator[Dispatcher]:
    """One that publishes into a queue that nobody reads."""
    settings = Settings(redis_url=stack.redis_url, key_prefix=PREFIX)
    dispatcher = Dispatcher(make_celery(settings), settings)
    yield dispatcher
    dispatcher.close()
    with Redis.from_url(stack.redis_url) as redis:
        for key in redis.scan_iter(f"{PREFIX}*"):
            redis.delete(key)


def test_a_channel_that_was_closed_under_its_client_costs_one_message(
    stack: Stack, dispatcher: Dispatcher
) -> None:
    async def story() -> None:
        await dispatcher.publish_again("one", 0, INTERACTIVE)
        producer = dispatcher._app.amqp.producer_pool.acquire()
        # As kombu leaves it when a connection is lost in the middle of something.
        producer.channel.connection = None
        producer.release()
        with pytest.raises(PublishError, match="AttributeError"):
            await dispatcher.publish_again("two", 0, INTERACTIVE)
        await dispatcher.publish_again("three", 0, INTERACTIVE)

    asyncio.run(story())
    with Redis.from_url(stack.redis_url) as redis:
        (queue,) = (
            key
            for key in redis.scan_iter(f"{PREFIX}*")
            if key.endswith(INTERACTIVE.encode()) and redis.type(key) == b"list"
        )
        assert redis.llen(queue) == 2
