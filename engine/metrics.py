"""Counters of an engine, and their Prometheus text under vLLM 0.32's names."""

from dataclasses import dataclass

_TYPES = {
    "num_requests_running": "gauge",
    "num_requests_waiting": "gauge",
    "kv_cache_usage_perc": "gauge",
    "prefix_cache_queries_total": "counter",
    "prefix_cache_hits_total": "counter",
    "admission_rejections_total": "counter",
}


@dataclass(slots=True)
class Metrics:
    """Prefix cache figures count tokens, as vLLM's do; usage is 0 to 1."""

    num_requests_running: int = 0
    num_requests_waiting: int = 0
    kv_cache_usage_perc: float = 0.0
    prefix_cache_queries_total: int = 0
    prefix_cache_hits_total: int = 0
    admission_rejections_total: int = 0

    def text(self, model: str) -> str:
        """The exposition format, one sample per metric, labelled with the model."""
        name_of_model = model.replace("\\", "\\\\").replace('"', '\\"')
        labels = f'model_name="{name_of_model}",engine="0"'
        return "".join(
            f"# TYPE vllm:{name} {kind}\nvllm:{name}{{{labels}}} {getattr(self, name)}\n"
            for name, kind in _TYPES.items()
        )
