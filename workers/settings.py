"""Settings of the workers' floor: environment variables that begin with `CANVASS_`."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from workers.webhooks.guard import parse_allowed
from workers.webhooks.signing import require_secret


def engine_url(url: str) -> str:
    """An engine's URL as it is known by, without a trailing slash. Raises ValueError when it is none."""
    name = url.strip().rstrip("/")
    parts = urlsplit(name)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{url!r} is no URL of an engine: say http://HOST:PORT")
    return name


class Settings(BaseSettings):
    """What a worker needs to know, and an API process with it."""

    model_config = SettingsConfigDict(env_prefix="CANVASS_", frozen=True, extra="ignore")

    redis_url: str = Field("redis://127.0.0.1:6379/0", description="Redis, broker and store in one.")
    key_prefix: str = Field("canvass", description="First part of every key in Redis.")
    engines: str = Field("http://127.0.0.1:8000", description="URLs of the engines, comma-separated.")
    tokenizer: str = Field(
        "google/diffusiongemma-26B-A4B-it",
        description="The served model's tokenizer: a folder, or a name on the model hub.",
    )
    canvas: int = Field(64, ge=16, multiple_of=16, description="Tokens in the canvas that the engines serve.")
    context: int | None = Field(
        None, ge=64, description="Tokens in the model's context; unset, the engine's own refusal counts."
    )

    shard_reads: int = Field(64, ge=1, description="Most reads of one shard, unless a wave has more shards.")
    max_shards: int = Field(8, ge=1, description="Most shards that a wave is cut into.")
    publish_batch: int = Field(32, ge=1, description="Most shards that one task message carries.")
    publish_gap_ms: float = Field(
        2,
        ge=0,
        description="Least milliseconds between two task messages of one process.",
    )
    log_format: Literal["console", "json"] = Field("console", description="How log lines are written.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least weight of what is logged."
    )
    log_states: bool = Field(
        False, description="Log what is decided about too: each accepted decision with its state, at DEBUG."
    )
    metrics_host: str = Field("127.0.0.1", description="Address on which a worker tells its metrics.")
    metrics_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port on which a worker tells its metrics, one for each process; 0: it tells none. An "
        "API tells its own at /metrics.",
    )

    queues: str = Field(
        "interactive,batch",
        description="Queues that a worker serves, comma-separated; one that serves `batch` alone runs at "
        "low priority, so that batches cost interactive decisions nothing.",
    )
    worker_threads: int = Field(16, ge=1, description="Task messages that one worker process runs at once.")
    visibility_timeout_s: int = Field(
        30,
        ge=1,
        description="Seconds until an unacknowledged task goes to another worker; under 25, chords get lost.",
    )

    reads_in_flight: int = Field(
        512, ge=1, description="Most reads that one worker process has at the engines."
    )
    engine_in_flight: int = Field(
        128, ge=1, description="Most reads that one worker process has at one engine; more wait their turn."
    )
    decision_reads_in_flight: int = Field(
        64, ge=1, description="Most reads of one decision that a worker process has under way at once."
    )
    most_reads: int = Field(50_000, ge=1, description="Most reads that a decision's first wave may take.")
    routing: Literal["prefix", "least-loaded", "round-robin"] = Field(
        "prefix", description="How an engine is chosen for a read (workers/routing/)."
    )
    constrained: bool = Field(
        False,
        description="Have engines that can do so look at the label ids alone: about a quarter less GPU time, "
        "but label mass is then always 1.",
    )
    engine_samples: bool = Field(
        False, description="Ask engines that can do so for several draws in one request."
    )
    engine_capabilities: dict[str, dict[str, Any]] = Field(
        {},
        description='What engines can do, where canaries shall not find out: {"URL": {"generate": false}}.',
    )
    pool_patience_s: float = Field(
        2, ge=0, description="Seconds that a read waits for an engine to come in before it fails."
    )
    read_timeout_s: float = Field(60, gt=0, description="Seconds that one read may take on an engine.")
    probe_interval_s: float = Field(0.5, gt=0, description="Seconds between looks at an engine that is out.")
    most_queued: int = Field(
        20_000, ge=1, description="Most decisions that wait for a worker; more are refused at once."
    )
    lease_s: float = Field(
        5, gt=1, description="Seconds until a decision whose worker fell silent is taken over by another."
    )
    queued_lease_s: float = Field(
        5,
        gt=1,
        description="Seconds after which a wave that nobody runs is published again, unless its message may "
        "still wait in its queue.",
    )
    drain_s: float = Field(
        20,
        ge=0,
        description="Seconds that a worker which was told to stop lets decisions end; then it hands back.",
    )
    hang_limit_s: float = Field(
        30,
        gt=0,
        description="Seconds without a sign of life of a worker's event loop after which it ends itself.",
    )
    deadline_s: int = Field(600, ge=1, description="Seconds in which a decision must end.")
    retention_s: int = Field(3600, ge=1, description="Seconds that a finished decision is kept.")
    webhook_retention_s: int = Field(
        30 * 3600,
        ge=1,
        description="Seconds that a webhook delivery is kept; its last attempt is after a day.",
    )
    webhook_secret: str = Field(
        "",
        repr=False,
        description="Signs the webhooks of an open server: `whsec_` and base64 of 24 to 64 random bytes. "
        "With API keys, each key has a secret of its own.",
    )
    webhook_allow: str = Field(
        "",
        description="Where webhooks may go beside public https addresses, comma-separated: `host`, "
        "`host:port`, an address or a CIDR.",
    )
    webhook_timeout_s: float = Field(15, gt=0, description="Seconds that one attempt of a webhook may take.")
    webhook_pace: float = Field(
        1, gt=0, le=1, description="Factor on the times between a webhook's attempts; tests hurry."
    )
    webhooks_in_flight: int = Field(
        256, ge=1, description="Most attempts of webhooks that one worker process has under way."
    )

    batch_in_flight: int = Field(
        64, ge=1, description="Most decisions that one feeder keeps open, of all its batches together."
    )
    batch_reads_beside: float = Field(
        200,
        gt=0,
        description="Reads a second that one feeder begins at most while interactive decisions come in; with "
        "none in the last second, a batch goes as fast as it is answered.",
    )
    batch_deadline_s: int = Field(
        24 * 3600, ge=1, description="Seconds in which a batch must end; what was not fed by then is expired."
    )
    batch_retention_s: int = Field(
        24 * 3600, ge=1, description="Seconds that a batch and its results are kept once it ended."
    )

    @field_validator("webhook_secret")
    @classmethod
    def _good_secret(cls, secret: str) -> str:
        return require_secret(secret) if secret else secret

    @field_validator("webhook_allow")
    @classmethod
    def _good_allow_list(cls, text: str) -> str:
        parse_allowed(text)
        return text

    @property
    def lanes(self) -> tuple[str, ...]:
        """The queues that a worker serves."""
        return tuple(name.strip() for name in self.queues.split(",") if name.strip())

    @property
    def engine_urls(self) -> tuple[str, ...]:
        """The engines, each without a trailing slash."""
        return tuple(engine_url(url) for url in self.engines.split(",") if url.strip())
