"""Logs: one line per event, on standard error; JSON where a machine reads them.

Every line about a decision says `decision=ID`. What libraries log through the standard library takes the same
form. No line holds what is decided about, unless CANVASS_LOG_STATES says so.
"""

from __future__ import annotations

import logging
import os
import sys

import structlog

from workers.settings import Settings


def set_up_logs(settings: Settings) -> None:
    """Have this process log as its settings say. A traceback is plain text: a rich one takes seconds."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.types.Processor]
    if settings.log_format == "json":
        # Local variables would bring states into the log.
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        last = [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]
    else:
        last = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    level: int = logging.getLevelNamesMapping()[settings.log_level]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # A line is one write, so that those of two loggers do not mix.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _take_in_libraries(shared, last, level)


def _take_in_libraries(
    shared: list[structlog.types.Processor], last: list[structlog.types.Processor], level: int
) -> None:
    """Have libraries' lines look like ours. Only their warnings count: Celery tells each task otherwise."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    # Transformers advises at its import, before anyone can have it log elsewhere, that torch is not here.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)
