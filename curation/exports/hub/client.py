"""Commit files to a dataset repository, by the hub's own client. Workers import it when they push."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete, HfApi, constants, set_client_factory
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

from curation.web.outbound.addresses import HUB
from curation.web.outbound.transport import CheckedTransport
from curation.web.problems import Problem

# The protocol Xet makes connections of its own, which nobody checks.
constants.HF_HUB_DISABLE_XET = True
DATASET = "dataset"
_TIMEOUT = httpx.Timeout(30.0, read=300.0, write=300.0)
# The client's connections are global to a process, and belong to one hub at a time.
_ONE_PUSH = threading.Lock()


class PushFailed(Exception):
    """The hub did not take the files. The message has no token."""


def push(
    name: str,
    *,
    endpoint: str,
    token: str,
    private: bool,
    files: Mapping[str, Path],
    earlier: Sequence[str],
    message: str,
) -> CommitInfo:
    """Write all files to a dataset repository in one commit, without those of `earlier` that are no longer among them.

    Pushing the same files again makes no commit and returns the one that has them. Raises `PushFailed`.
    """
    api = HfApi(endpoint=endpoint, token=token)
    try:
        with _ONE_PUSH, _checked_connections(endpoint):
            return _push(api, name, private=private, files=files, earlier=earlier, message=message)
    except KeyError as error:  # the client reads the hub's answers without checks
        raise PushFailed(f"the hub's answer has no {error}") from None
    except (HfHubHTTPError, httpx.HTTPError, Problem, OSError, ValueError) as error:
        raise PushFailed(_reason(error, token)) from None  # the cause may repeat the request


def _push(
    api: HfApi, name: str, *, private: bool, files: Mapping[str, Path], earlier: Sequence[str], message: str
) -> CommitInfo:
    try:
        info = api.dataset_info(name)
    except RepositoryNotFoundError:
        api.create_repo(name, repo_type=DATASET, private=private, exist_ok=True)
        info = api.dataset_info(name)
    if private and not info.private:
        raise ValueError(f"the repository {name} exists and is public; push to it as public, or name another one")
    there = set(api.list_repo_files(name, repo_type=DATASET, revision=info.sha))
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationAdd(path_in_repo=path, path_or_fileobj=file) for path, file in files.items()
    ]
    outdated = sorted((there & set(earlier)).difference(files))
    operations += [CommitOperationDelete(path_in_repo=path) for path in outdated]
    # With the parent named, a commit of somebody else in between is refused and not overwritten.
    return api.create_commit(
        name, operations, commit_message=message, repo_type=DATASET, parent_commit=info.sha, num_threads=2
    )


@contextmanager
def _checked_connections(endpoint: str) -> Iterator[None]:
    """Connect to allowed addresses only, and send the token to no other host than the hub's."""
    host = urlsplit(endpoint).netloc

    def keep_token(request: httpx.Request) -> None:
        if request.url.netloc.decode("ascii") != host.lower():
            request.headers.pop("Authorization", None)

    def client() -> httpx.Client:
        return httpx.Client(
            transport=CheckedTransport(HUB),
            event_hooks={"request": [keep_token]},
            follow_redirects=True,
            timeout=_TIMEOUT,
        )

    set_client_factory(client)
    try:
        yield
    finally:
        set_client_factory(lambda: httpx.Client(follow_redirects=True))


def _reason(error: Exception, token: str) -> str:
    text = error.detail if isinstance(error, Problem) else str(error)
    first = (" ".join(text.split())[:500] or type(error).__name__).replace(token, "…")
    if isinstance(error, httpx.ReadError | httpx.ReadTimeout | httpx.RemoteProtocolError):
        return f"{first.rstrip('.')}. The hub may have made the commit; pushing these files again makes no second one."
    return first
