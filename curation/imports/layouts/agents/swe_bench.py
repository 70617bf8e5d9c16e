"""The files of SWE-bench beside trajectories: which instances are resolved, and the patches that were predicted."""

from collections.abc import Mapping
from typing import Any

from curation.imports.layouts.session import SessionOutcome

# The lists of a report by the outcome of the instances in them. The first list that has an instance decides. Results of
# SWE-agent before 1.0 have the same lists without `_ids`.
_LISTS = (
    ("resolved_ids", SessionOutcome.SOLVED),
    ("resolved", SessionOutcome.SOLVED),
    ("error_ids", SessionOutcome.ERROR),
    ("unresolved_ids", SessionOutcome.FAILED),
    ("empty_patch_ids", SessionOutcome.FAILED),
    ("no_generation", SessionOutcome.FAILED),
    ("not_generated", SessionOutcome.FAILED),
    ("completed_ids", SessionOutcome.FAILED),
    ("applied", SessionOutcome.FAILED),
    ("generated", SessionOutcome.FAILED),
)


def read_outcomes(value: Any) -> dict[str, SessionOutcome]:
    """Return the outcome of each instance in a report of all instances or of one. Other JSON has none."""
    if not isinstance(value, Mapping):
        return {}
    found: dict[str, SessionOutcome] = {}
    for name, outcome in _LISTS:
        listed = value.get(name)
        for instance in listed if isinstance(listed, list) else []:
            found.setdefault(str(instance), outcome)
    for instance, report in value.items():
        if isinstance(report, Mapping) and isinstance(report.get("resolved"), bool):
            found.setdefault(instance, SessionOutcome.of(report["resolved"]))
    return found


def is_predictions(value: Any) -> bool:
    """Whether the value has patches, by instance or as a list. They decide no outcome."""
    rows = list(value.values()) if isinstance(value, Mapping) else value
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, Mapping) and {"instance_id", "model_patch"} <= row.keys() for row in rows)
    )
