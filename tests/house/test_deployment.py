"""docker-compose.yml and the Dockerfile say what the code does: there is no Docker engine to ask here."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.app import make_app
from api.settings import ApiSettings
from engine.options import parse_options
from workers.celery_app import LANES
from workers.tracing import ENDPOINTS

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("engine", "worker", "batch-worker", "api")


def test_the_services_are_all_there() -> None:
    optional = {name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service}
    assert set(SERVICES) == {"redis", "engine", "worker", "batch-worker", "api", *optional}
    assert optional == {"vllm": ["gpu"], "prometheus": ["observe"], "grafana": ["observe"]}


def test_redis_appends_to_a_file_and_evicts_nothing() -> None:
    command = SERVICES["redis"]["command"]
    assert command[command.index("--appendonly") + 1] == "yes"
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert SERVICES["redis"]["volumes"] == ["redis-data:/data"]


@pytest.mark.parametrize("name", OURS)
def test_commands_name_modules_that_run(name: str) -> None:
    python, flag, module, *_ = SERVICES[name]["command"]
    assert (python, flag) == ("python", "-m")
    assert find_spec(f"{module}.__main__") is not None


@pytest.mark.parametrize("name", OURS)
def test_environment_names_are_settings(name: str) -> None:
    known = {f"CANVASS_{field.upper()}" for field in ApiSettings.model_fields} | set(ENDPOINTS)
    assert set(SERVICES[name]["environment"]) <= known


def test_the_environment_as_it_stands_makes_valid_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SERVICES["api"]["environment"].items():
        monkeypatch.setenv(name, _with_defaults(value))
    settings = ApiSettings()
    assert settings.redis_url == "redis://redis:6379/0"
    assert settings.engine_urls == ("http://engine:8000",)
    assert settings.host == "0.0.0.0"


def test_each_queue_has_a_worker_of_its_own() -> None:
    served = [SERVICES[name]["environment"]["CANVASS_QUEUES"] for name in ("worker", "batch-worker")]
    assert tuple(served) == LANES


def test_ports_and_health_checks_are_the_ones_that_are_served() -> None:
    environment = SERVICES["api"]["environment"]
    assert SERVICES["api"]["ports"] == [f"{environment['CANVASS_PORT']}:{environment['CANVASS_PORT']}"]
    assert f"EXPOSE {environment['CANVASS_PORT']}" in DOCKERFILE
    assert _health_path("api", environment["CANVASS_PORT"]) in make_app(ApiSettings()).openapi()["paths"]
    options = parse_options(SERVICES["engine"]["command"][3:])
    assert options.port == 8000
    assert _health_path("engine", "8000") == "/health"


def test_the_diffusion_model_is_served_as_the_canvas_is_set() -> None:
    command = SERVICES["vllm"]["command"]
    assert command[0] == "google/diffusiongemma-26B-A4B-it"
    config = json.loads(command[command.index("--diffusion-config") + 1])
    assert config["canvas_length"] == ApiSettings.model_fields["canvas"].default
    assert command[command.index("--max-logprobs") + 1] == "32"
    assert "--enable-prefix-caching" in command
    assert ApiSettings.model_fields["tokenizer"].default == command[0]


def test_the_image_holds_every_package_and_runs_a_known_command() -> None:
    copied = {words[1] for line in DOCKERFILE.splitlines() if (words := line.split())[:1] == ["COPY"]}
    assert {"planner", "workers", "api", "engine", "client", "requirements.lock"} <= copied
    command = json.loads(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[-1])
    assert command == SERVICES["api"]["command"]
    assert re.search(r"^USER canvass$", DOCKERFILE, re.MULTILINE)


def test_the_image_builds_the_tokenizer_where_the_settings_look_for_it() -> None:
    (built,) = re.findall(r"python -m engine\.tokenizer --out (\S+)", DOCKERFILE)
    assert _with_defaults(SERVICES["api"]["environment"]["CANVASS_TOKENIZER"]) == built
    assert f"ENV CANVASS_TOKENIZER={built}" in DOCKERFILE


def test_the_image_runs_a_python_that_the_project_accepts() -> None:
    found = re.search(r"^FROM python:(\d+)\.(\d+)", DOCKERFILE, re.MULTILINE)
    assert found is not None
    assert (int(found[1]), int(found[2])) >= (3, 11)
    assert sys.version_info >= (3, 11)


def _with_defaults(value: str) -> str:
    """A compose value with its `${NAME:-default}` replaced by the default."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def _health_path(name: str, port: str) -> str:
    """The path that a service's health check opens; its port must be the service's own."""
    test = SERVICES[name]["healthcheck"]["test"]
    assert test[:3] == ["CMD", "python", "-c"]
    found = re.search(rf"http://127\.0\.0\.1:{port}(/\w+)", shlex.join(test))
    assert found is not None
    return found[1]
