"""The Celery application: its settings, and the names that messages go by.

The settings are measured or read in celery 5.7.0 and kombu 5.7.0; docs/architecture.md says why each
stands as it does.
"""

from __future__ import annotations

from celery import Celery

from workers.settings import Settings

INTERACTIVE = "interactive"
BATCH = "batch"
LANES = (INTERACTIVE, BATCH)
"""The queues, in the order in which a worker looks into them."""

RUN = "canvass.run"
"""Runs whole waves of one shard and advances their plans. Arguments: a list of [decision id, wave]."""

SHARD = "canvass.shard"
"""Runs one shard of a larger wave, as a chord's header. Arguments: decision id, wave, shard, shards."""

ADVANCE = "canvass.advance"
"""Advances a plan whose wave was a chord, as its body. Arguments: header replies, decision id, wave."""

DELIVER = "canvass.deliver"
"""Begins attempts of webhooks, and returns before they end. Arguments: a list of deliveries' names."""


def make_celery(settings: Settings) -> Celery:
    """The application, with no tasks registered: enough to publish, and what a worker adds its tasks to."""
    app = Celery("canvass", broker=settings.redis_url, backend=settings.redis_url)
    prefix = f"{settings.key_prefix}:celery:"
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        task_default_queue=INTERACTIVE,
        task_acks_late=True,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        result_expires=settings.deadline_s,
        redis_socket_timeout=30,
        redis_max_connections=1000,
        result_backend_transport_options={"global_keyprefix": prefix},
        broker_transport_options={
            "global_keyprefix": prefix,
            "queue_order_strategy": "priority",
            "visibility_timeout": settings.visibility_timeout_s,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "socket_timeout": 30,
            "socket_connect_timeout": 5,
            "max_connections": 1000,
        },
    )
    return app
