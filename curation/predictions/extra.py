"""The packages of the extra `predict`, which a server may lack."""

from importlib.util import find_spec

MISSING = (
    "Predictions and clusters need scikit-learn and cleanlab on the server: pip install 'winnow-curation[predict]'."
)


def missing_extra() -> str:
    """Return `MISSING` if one of the packages is not installed, else "". Nothing is imported."""
    return MISSING if any(find_spec(name) is None for name in ("sklearn", "cleanlab")) else ""
