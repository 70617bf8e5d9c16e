"""The Python client of Winnow's REST API.

    from winnow.client import Winnow

    project = Winnow("http://localhost:8000", token="wn_…").project("demo")
    for sample in project.samples(status="pending", bucket=["final", "refined"]):
        print(sample.id, sample.score)

It needs httpx alone, and nothing of the site. Refused and failed requests are exceptions of `winnow.client.errors`.
"""

from winnow.client.errors import (
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
    WinnowError,
    WrongFile,
)
from winnow.client.project import Project
from winnow.client.records import Audit, Evaluation, Export, Guarantee, Run, RunFailed, Sample
from winnow.client.rows import Rows
from winnow.client.site import Winnow

__all__ = [
    "Audit",
    "Conflict",
    "ConnectionFailed",
    "Evaluation",
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
    "Winnow",
    "WinnowError",
    "WrongFile",
]
