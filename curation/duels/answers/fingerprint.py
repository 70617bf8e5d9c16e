"""Fingerprints: what decides an answer or a verdict besides its prompt."""

import hashlib
from collections.abc import Mapping

import orjson

from curation.llm.client.completion import Target


def fingerprint(stage: str, target: Target, instructions_sha256: str, params: Mapping[str, object]) -> str:
    """SHA-256 over stage, model, address, instructions and parameters: the same asks for nothing new."""
    parts = {
        "stage": stage,
        "model": target.model,
        "api_base": target.api_base,
        "instructions": instructions_sha256,
        "params": {**target.params, **params},
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()
