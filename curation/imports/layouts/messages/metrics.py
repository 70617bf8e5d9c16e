"""The time, model, tokens and price of a message, as a step has them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from curation.imports.layouts.session import NO_USAGE, Json, SessionUsage, Step, is_figure

# The fields of messages, in the forms of OpenAI, Anthropic, LangChain, AutoGen, Cline, Gemini CLI and others.
TIMES = ("timestamp", "created_at", "createdAt", "created", "create_time", "ts", "time")
MODELS = ("model", "model_id", "model_name")
# Objects of a message that may have these facts: of LangChain, gptme and others.
_HOLDERS = ("response_metadata", "metadata")
COSTS = ("cost", "cost_usd", "costUSD")
USED = ("usage", "usage_metadata", "token_usage", "models_usage", "metrics", "tokens", "usageMetadata")
FACTS = frozenset((*TIMES, *MODELS, *COSTS, *USED, *_HOLDERS))
# Anthropic counts what it reads from its cache, or writes to it, apart from its `input_tokens`, and so do Bedrock,
# Pi and Kimi. Proxies that name them `prompt_tokens` have added both.
_CACHE_READ = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheRead", "input_cache_read", "inputCacheRead")
_CACHE_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWrite", "input_cache_creation") + (
    "inputCacheCreation",
)
_TOKENS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "inputTokens", "input", "prompt", "promptTokenCount")
    + ("input_other", "inputOther", "promptTokens"),
    "completion_tokens": ("completion_tokens", "output_tokens", "outputTokens", "output", "completion")
    + ("candidatesTokenCount", "completionTokens"),
    "cached_tokens": ("cached_tokens", *_CACHE_READ, "cached_input_tokens", "cachedInputTokens", "cacheReadTokens")
    + ("cached", "cache_read_tokens", "cachedContentTokenCount"),
}
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_SUMMED = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
# Numbers below are no seconds since 1970, and above no seconds but milliseconds or less.
_FIRST_SECOND, _LAST_SECOND, _LAST_NANOSECOND = 1e8, 1e11, 1e20


def add_facts(step: Step, entry: Mapping[str, Any]) -> dict[str, str]:
    """Add the facts of a message to its step, unless this has them, and return what became of each field."""
    became: dict[str, str] = {}
    name = next((name for name in TIMES if time_of(entry.get(name))), "")
    if name and "timestamp" not in step:
        step["timestamp"] = time_of(entry[name])
        became[name] = "timestamp"
    if step["source"] != "agent":
        return became
    name = next((name for name in MODELS if isinstance(entry.get(name), str) and entry[name]), "")
    if name and "model_name" not in step:
        step["model_name"] = entry[name]
        became[name] = "agent"
    if "metrics" not in step and (metrics := metrics_of(entry)):
        step["metrics"] = metrics
        became |= {name: "usage" for name in (*USED, *COSTS) if entry.get(name) is not None}
    for holder in _HOLDERS:
        if isinstance(inner := entry.get(holder), Mapping):
            became |= {f"{holder}.{name}": word for name, word in add_facts(step, inner).items()}
    return became


def time_of(value: Any) -> str | None:
    """Return a time of ISO 8601, or one in seconds, milliseconds or less since 1970, as ISO 8601; None for others."""
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value > _LAST_NANOSECOND:
        return None
    for _ in range(3):
        value = value / 1000 if value > _LAST_SECOND else value
    return datetime.fromtimestamp(value, UTC).isoformat() if _FIRST_SECOND < value <= _LAST_SECOND else None


def metrics_of(entry: Mapping[str, Any]) -> Json:
    """Return the tokens and the price of a message by ATIF's names. Figures that no run has are in `extra`."""
    used: Mapping[str, Any] = next((entry[name] for name in USED if isinstance(entry.get(name), Mapping)), {})
    if isinstance(inner := used.get("tokens"), Mapping):  # of Cline
        used = {**used, **inner}
    if isinstance(cache := used.get("cache"), Mapping):  # of opencode
        used = {**used, _CACHE_READ[0]: cache.get("read") or None, _CACHE_WRITTEN[0]: cache.get("write")}
    details: Mapping[str, Any] = next((used[name] for name in _DETAILS if isinstance(used.get(name), Mapping)), {})
    found: Json = {name: _first(used, names) for name, names in _TOKENS.items()}
    if found["prompt_tokens"] is not None and used.get("prompt_tokens") is None:
        found["prompt_tokens"] += sum(_first(used, names) or 0 for names in (_CACHE_READ, _CACHE_WRITTEN))
    if found["completion_tokens"] is not None:  # Gemini counts its thoughts apart
        found["completion_tokens"] += _first(used, ("thoughtsTokenCount", "thoughts")) or 0
    if found["cached_tokens"] is None:
        found["cached_tokens"] = _first(details, ("cached_tokens", "cache_read"))
    found["cost_usd"] = _first(entry, COSTS)
    if found["cost_usd"] is None:
        found["cost_usd"] = _first(used, COSTS)
    given = {name: value for name, value in found.items() if value is not None}
    odd = {name: value for name, value in given.items() if not is_figure(name, value)}
    return {name: value for name, value in given.items() if name not in odd} | ({"extra": odd} if odd else {})


def _first(values: Mapping[str, Any], names: Sequence[str]) -> int | float | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value) if is_figure("tokens", value) else value
    return None


def usage_of(steps: Sequence[Step], totals: Mapping[str, Any] | None = None) -> SessionUsage:
    """Return the usage of a run: of its totals in ATIF's names, or else of its steps."""
    metrics = [step["metrics"] for step in steps if step.get("metrics")]
    seconds = _seconds(steps)
    if not metrics and not totals:
        return NO_USAGE if seconds is None else SessionUsage(seconds=seconds)
    extras = [one["extra"] for one in metrics if one.get("extra")]
    sums, dropped = [], []
    for name in _SUMMED:
        given = [one[name] for one in metrics if one.get(name) is not None]
        each = [value for value in given if is_figure(name, value)]
        odd = (extra[name] for extra in extras if name in extra)
        if len(each) < len(given) or any(isinstance(one, int | float) and not is_figure(name, one) for one in odd):
            dropped.append(name)
        sums.append((totals or {}).get(f"total_{name}", sum(each) if each else None))
    prompt, completion, cached, cost = sums
    return SessionUsage(prompt, completion, cached, cost, seconds, tuple(dropped))


def _seconds(steps: Sequence[Step]) -> float | None:
    """Return the seconds between the first step and the last one."""
    stamps = [step["timestamp"] for step in steps if step.get("timestamp")]
    times = [datetime.fromisoformat(stamp.replace("Z", "+00:00")) for stamp in stamps]
    if len(times) < 2 or len({time.tzinfo is None for time in times}) > 1:
        return None
    return (max(times) - min(times)).total_seconds()


def model_of(steps: Sequence[Step]) -> str:
    """Return the model of the last answer that names one, or an empty text."""
    return next((step["model_name"] for step in reversed(steps) if step.get("model_name")), "")
