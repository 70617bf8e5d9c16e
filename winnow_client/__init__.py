"""The Python client of Winnow's REST API.

    from winnow_client import Winnow

    project = Winnow("http://localhost:8000", token="wn_…").project("demo")
    for sample in project.samples(status="pending", bucket=["final", "refined"]):
        print(sample.id, sample.score)

`AsyncWinnow` has the same calls for asyncio. Refused and failed requests are exceptions of `winnow_client.errors`.
"""

from winnow_client.errors import (
    Conflict,
    ConnectionFailed,
    FieldError,
    Invalid,
    MissingPackage,
    NotAllowed,
    NotFound,
    NotSignedIn,
    ProblemError,
    RateLimited,
    RunTimeout,
    ServerFailed,
    Stale,
    UnexpectedResponse,
    WinnowError,
    WrongFile,
)
from winnow_client.project import Project
from winnow_client.records import Audit, Evaluation, EvaluationRow, Export, Guarantee, Run, RunFailed, Sample
from winnow_client.rows import Rows
from winnow_client.site import AsyncWinnow, Winnow

__all__ = [
    "AsyncWinnow",
    "Audit",
    "Conflict",
    "ConnectionFailed",
    "Evaluation",
    "EvaluationRow",
    "Export",
    "FieldError",
    "Guarantee",
    "Invalid",
    "MissingPackage",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "ProblemError",
    "Project",
    "RateLimited",
    "Rows",
    "Run",
    "RunFailed",
    "RunTimeout",
    "Sample",
    "ServerFailed",
    "Stale",
    "UnexpectedResponse",
    "Winnow",
    "WinnowError",
    "WrongFile",
]
