"""A hub that speaks the part of the Hugging Face API that a push and `load_dataset` use: a real HTTP server.

It keeps repositories in memory: commits of whole trees, LFS objects, and the requests it got.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.serving import serving, url_of

TOKEN = "hf_" + "stub" * 8
# As .gitattributes of a dataset repository has it.
_LFS_ENDINGS = (".parquet", ".gz", ".tar")
_LFS_FROM = 20_000


@dataclass
class HubRepository:
    private: bool
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    lfs: set[str] = field(default_factory=set)

    @property
    def head(self) -> str:
        return self.commits[-1][0]

    @property
    def tree(self) -> dict[str, bytes]:
        return self.commits[-1][1]

    def commit(self, tree: dict[str, bytes]) -> None:
        whole = repr((len(self.commits), sorted(tree.items()))).encode()
        self.commits.append((hashlib.sha1(whole).hexdigest(), tree))  # noqa: S324 - as git


@dataclass
class Hub:
    """`fail_next` are answers (status, text) to the next requests with a word in their path, `lose_next` gives none."""

    address: str = ""
    repositories: dict[str, HubRepository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    fail_next: list[tuple[str, int, str]] = field(default_factory=list)
    lose_next: bool = False

    def add(self, name: str, *, private: bool = True, tree: dict[str, bytes] | None = None) -> HubRepository:
        found = self.repositories[name] = HubRepository(private)
        found.commit({".gitattributes": b"*.parquet filter=lfs\n", **(tree or {})})
        return found


def _oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324 - as git


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Write nothing."""

    def _answer(self, status: int, body: object = b"", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_HEAD(self) -> None:
        self._handle(b"")

    def do_GET(self) -> None:
        self._handle(b"")

    def do_POST(self) -> None:
        self._handle(self._body())

    def do_PUT(self) -> None:
        self._handle(self._body())

    def _handle(self, body: bytes) -> None:
        path = unquote(urlsplit(self.path).path)
        hub = self.hub
        hub.requests.append((self.command, path, self.headers.get("Authorization")))
        for failure in hub.fail_next:
            if failure[0] in path:
                hub.fail_next.remove(failure)
                self._answer(failure[1], {"error": failure[2]})
                return
        if path.startswith("/storage/"):
            hub.objects[path.rpartition("/")[2]] = body
            self._answer(200, ETag="stored")
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid username or password."}, X_Error_Message="Invalid credentials")
            return
        if path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        else:
            self._repository(path, body)

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.hub.repositories:
            self._answer(409, {"error": "You already created this dataset repo"})
            return
        self.hub.add(name, private=asked.get("visibility") == "private" or asked.get("private") is True)
        self._answer(200, {"url": f"{self.hub.address}/datasets/{name}", "name": name})

    def _repository(self, path: str, body: bytes) -> None:
        found = re.match(r"/(?:api/)?datasets/([^/]+/[^/.]+)(?:\.git)?(/.*)?$", path)
        repository = self.hub.repositories.get(found[1]) if found else None
        if found is None or repository is None:
            self._answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
            return
        name, rest = found[1], found[2] or ""
        if rest.startswith("/preupload/"):
            self._answer(200, {"files": [self._mode(repository, file) for file in json.loads(body)["files"]]})
        elif rest == "/info/lfs/objects/batch":
            self._batch(json.loads(body))
        elif rest.startswith("/commit/"):
            self._commit(name, repository, body)
        elif rest.startswith("/resolve/"):
            self._resolve(repository, rest)
        elif rest.startswith(("/tree/", "/paths-info/")):
            folder = rest.split("/", 3)[3] if rest.count("/") > 2 else ""
            entries = [self._entry(repository, file) for file in repository.tree if file.startswith(folder)]
            self._answer(200, entries)
        elif rest == "" or rest.startswith("/revision/"):
            siblings = [{"rfilename": file} for file in repository.tree]
            self._answer(
                200,
                {"_id": "1", "id": name, "sha": repository.head, "private": repository.private, "siblings": siblings,
                 "tags": [], "disabled": False, "gated": False, "downloads": 0, "likes": 0, "createdAt": None},
            )  # fmt: skip
        else:
            self._answer(404, {"error": "Not found"})

    def _mode(self, repository: HubRepository, file: dict[str, Any]) -> dict[str, Any]:
        path = file["path"]
        is_lfs = path.endswith(_LFS_ENDINGS) or file["size"] >= _LFS_FROM
        here = repository.tree.get(path)
        oid = None if here is None else hashlib.sha256(here).hexdigest() if path in repository.lfs else _oid(here)
        mode = "lfs" if is_lfs else "regular"
        return {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid}

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = []
        for wanted in asked["objects"]:
            answer = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.hub.objects:
                # Another host by name, as the hub's own storage is.
                storage = self.hub.address.replace("127.0.0.1", "localhost")
                answer["actions"] = {"upload": {"href": f"{storage}/storage/{wanted['oid']}", "header": {}}}
            objects.append(answer)
        self._answer(200, {"transfer": "basic", "objects": objects})

    def _commit(self, name: str, repository: HubRepository, body: bytes) -> None:
        lines = [json.loads(line) for line in body.splitlines()]
        header = lines[0]["value"]
        if header.get("parentCommit") not in (None, repository.head):
            self._answer(412, {"error": "A commit has happened since. Please refresh and try again."})
            return
        tree = dict(repository.tree)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
                repository.lfs.discard(value["path"])
            elif line["key"] == "lfsFile":
                data = self.hub.objects[value["oid"]]
                assert hashlib.sha256(data).hexdigest() == value["oid"]
                tree[value["path"]] = data
                repository.lfs.add(value["path"])
            elif line["key"] == "deletedFile":
                del tree[value["path"]]
        repository.commit(tree)
        if self.hub.lose_next:
            self.hub.lose_next, self.close_connection = False, True
            return
        url = f"{self.hub.address}/datasets/{name}/commit/{repository.head}"
        self._answer(200, {"success": True, "commitOid": repository.head, "commitUrl": url, "hookOutput": ""})

    def _resolve(self, repository: HubRepository, rest: str) -> None:
        data = repository.tree.get(rest.split("/", 3)[3])
        if data is None:
            self._answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound")
            return
        begin, _, end = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        part = data[int(begin) : int(end) + 1 if end else None]
        etag = f'"{hashlib.sha256(data).hexdigest()}"'
        headers = {"ETag": etag, "X_Repo_Commit": repository.head, "Accept_Ranges": "bytes"}
        self._answer(206 if "Range" in self.headers else 200, part, **headers)

    def _entry(self, repository: HubRepository, path: str) -> dict[str, Any]:
        data = repository.tree[path]
        return {"type": "file", "path": path, "size": len(data), "oid": _oid(data)}


@contextmanager
def running_hub() -> Iterator[Hub]:
    hub = Hub()
    with serving(_Handler, hub=hub) as server:
        hub.address = url_of(server)
        yield hub
