"""The wheel: all of the site is in it, and with its requirements alone its command line works on an empty folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import httpx
import pytest

from curation.dashboard.demo.builder import FILES
from tests.deploy.core import make_environment
from tests.e2e.test_client import tutorial
from tests.parts import missing
from tests.serving import free_port

pytestmark = [pytest.mark.long, pytest.mark.embedded]
ROOT = Path(__file__).resolve().parents[2]
SITE = ("config", "curation", "judging", "sandbox", "templates", "static", "docs", "manage.py", "gunicorn.conf.py")
READY_WITHIN = 60.0
_TRAINERS = ("datasets", "peft", "tokenizers", "torch", "transformers", "trl")
# Allowed imports of a file besides the requirements, for a function that names the missing package.
OF_EXTRAS = {
    "mcp.py": ("fastmcp", "httpx2", "mcp", "starlette"),
    "server/curation/imports/layouts/assistants/agent_logs.py": ("atif_make",),
    "server/curation/imports/sources/arrow.py": ("pyarrow",),
    "server/curation/projects/sign_in/oidc.py": ("authlib.", "joserfc."),
    "server/curation/evaluations/uplift/train_small.py": _TRAINERS,
    "server/judging/learning/approval.py": ("cleanlab.", "sklearn.", "threadpoolctl"),
    "server/judging/learning/clusters.py": ("sklearn.", "threadpoolctl"),
    "server/config/telemetry.py": ("opentelemetry.", "sentry_sdk"),
    "server/sandbox/agent/openenv.py": ("websockets.",),
    "server/sandbox/agent/openenv_server.py": ("websockets.",),
}


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", *SITE], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def _pip(command: str, *words: str, **values: str) -> str:
    """The error of pip, or nothing."""
    quiet = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *words]
    done = subprocess.run(quiet, env={**os.environ, **values}, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of a copy of the tree, by package: building leaves files beside the sources."""
    copy, made, backend = map(tmp_path_factory.mktemp, ("source", "dist", "backend"))
    skipped = shutil.ignore_patterns("__pycache__")
    for folder in (*SITE[:7], "deploy", "winnow", "winnow_client", "requirements"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=skipped)
    for file in ("manage.py", "gunicorn.conf.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    needed = tomllib.loads((copy / "pyproject.toml").read_text())["build-system"]["requires"]
    # Once: an isolated build installs it for each wheel.
    failed = _pip("install", "--no-compile", "--target", str(backend), *needed)
    if "No matching distribution found for setuptools" in failed:
        missing("the package index, which has the setuptools that builds the wheel, does not answer")
    words = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(made), str(copy), str(copy / "winnow_client"))
    failed = failed or _pip("wheel", *words, PYTHONPATH=str(backend))
    assert not failed, failed
    return {path.name.partition("-")[0]: path for path in made.glob("*.whl")}


@pytest.fixture(scope="module")
def wheel(wheels: dict[str, Path]) -> Path:
    return wheels["winnow_curation"]


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheels and their requirements, without extras."""
    return make_environment(tmp_path_factory.mktemp("venv"), list(wheels.values()))


def _environment(folder: Path, **values: str) -> dict[str, str]:
    gone = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE", "WINNOW_DATA", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if key not in gone}
    return kept | {"SANDBOX": "none", "HOME": str(folder)} | values


def _say(installed: Path, folder: Path, *words: str, **values: str) -> subprocess.CompletedProcess[str]:
    command = [str(installed / "winnow-curation"), *words]
    environment = _environment(folder, **values)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_wheel_has_every_file_of_the_site_and_claims_one_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {f"winnow/server/{name}" for name in _tracked()} <= set(names)
    assert "winnow/server/docs/notebooks/duel.ipynb" in names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"winnow"}
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_client_is_a_package_that_needs_nothing_of_the_server(wheels: dict[str, Path], tmp_path: Path) -> None:
    programs = make_environment(tmp_path / "venv", [wheels["winnow_client"]])
    tried = "import httpx, sys, winnow_client, winnow_client.command; print(sorted(sys.modules))"
    done = subprocess.run(
        [str(programs / "python"), "-c", tried], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert "'winnow_client.command'" in done.stdout and "'django'" not in done.stdout
    packages = next((tmp_path / "venv").glob("lib/*/site-packages"))
    assert not {"django", "litellm", "winnow", "pandas"} & {path.name for path in packages.iterdir()}
    assert (packages / "winnow_client/py.typed").exists()


def test_heavy_parts_are_extras(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    metadata = zipfile.ZipFile(wheel).read(next(name for name in names if name.endswith("/METADATA"))).decode()
    needed = [
        line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires-Dist")
    ]

    assert 'websockets; extra == "live"' in needed
    assert 'django-storages[s3]; extra == "s3"' in needed
    assert [name for name in needed if name.startswith("fastmcp") and name.endswith('extra == "mcp"')]
    core = [name for name in needed if "extra ==" not in name]
    assert "litellm" in " ".join(core) and f"winnow-client=={wheel.name.split('-')[1]}" in core
    assert not [name for name in core if name.startswith(("websockets", "django-storages", "boto", "pyarrow"))]


@pytest.mark.slow
def test_the_wheel_imports_what_it_requires_and_nothing_else(installed: Path, tmp_path: Path) -> None:
    package = next(installed.parent.glob("lib/*/site-packages")) / "winnow"
    words = [str(installed / "python"), str(ROOT / "tests/deploy/imports_of_the_site.py"), str(package)]
    environment = _environment(tmp_path, DJANGO_SETTINGS_MODULE="config.settings", WINNOW_DATA=str(tmp_path))
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    missing = json.loads(done.stdout)
    assert set(missing) == set(OF_EXTRAS), missing
    for file, modules in missing.items():
        assert all(module.startswith(OF_EXTRAS[file]) for module in modules), (file, modules)


@pytest.mark.slow
def test_the_command_line_and_django_start(installed: Path, tmp_path: Path) -> None:
    usage = _say(installed, tmp_path, "--help")
    assert usage.returncode == 0 and "start with a sample project" in usage.stdout

    checked = _say(installed, tmp_path, "manage", "check")
    assert checked.returncode == 0 and "no issues" in checked.stdout, checked.stderr

    explained = _say(installed, tmp_path, "mcp", "--help")
    assert explained.returncode == 0 and "--http PORT" in explained.stdout
    agents = _say(installed, tmp_path, "mcp")
    assert agents.returncode != 0 and "pip install 'winnow-curation[mcp]'" in agents.stderr


@pytest.mark.slow
def test_a_missing_extra_and_an_unknown_command_are_named(installed: Path, tmp_path: Path) -> None:
    for extra, setting in (
        ("s3", {"FILES_URL": "s3://bucket/prefix"}),
        ("postgres", {"DATABASE_URL": "postgresql://winnow@127.0.0.1/winnow"}),
        ("oidc", {"OIDC_ISSUER": "https://id.example.org", "OIDC_CLIENT_ID": "winnow"}),
    ):
        refused = _say(installed, tmp_path, "manage", "check", **setting)
        assert refused.returncode != 0
        (name, *_) = setting
        assert f"{name} names a" in refused.stderr
        assert f"pip install 'winnow-curation[{extra}]'" in refused.stderr

    unknown = _say(installed, tmp_path, "sreve")
    assert unknown.returncode != 0
    assert "There is no command 'sreve'" in unknown.stderr and "serve" in unknown.stderr


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_the_demo_is_ready_in_an_empty_folder(installed: Path, wheels: dict[str, Path], tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "demo.log"
    work = tmp_path / "work"
    work.mkdir()
    # A folder of the user's own that has the name of one of the site's.
    (work / "config").mkdir()
    (work / "config/__init__.py").write_text("raise RuntimeError('this is not the site')\n")
    started = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(
            [str(installed / "winnow"), "demo"],
            cwd=work,
            env=_environment(work, PORT=str(port), HOME=str(tmp_path)),  # the scanner caches its rules there
            stdout=said,
            stderr=said,
        )
    try:
        while "Winnow is ready" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() - started < READY_WITHIN, log.read_text()
            time.sleep(0.2)
        assert {path.name for path in work.iterdir()} == {"config", "data"}

        token = _say(installed, work, "token", "create", "--user", "demo", "--scopes", "read").stdout.strip()
        api = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"})
        assert [row["slug"] for row in api.get("/api/v1/projects").raise_for_status().json()["data"]] == ["demo"]
        page = api.get("/login/").raise_for_status().text
        style = next(word.split('"')[1] for word in page.split("href=") if ".css" in word[:200])
        assert api.get(style).raise_for_status().headers["content-type"].startswith("text/css")

        _run_the_tutorial(installed, wheels["winnow_client"], work, port)
        _write_and_check_an_export(installed, work)
        _write_and_check_a_backup(installed, work)
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(40)
    assert status == 0


def _run_the_tutorial(installed: Path, client: Path, work: Path, port: int) -> None:
    """In a folder without the tree: with the server's requirements, then with the client and its extra alone."""
    scopes = "read,review,run,export,admin"
    token = _say(installed, work, "token", "create", "--user", "demo", "--scopes", scopes).stdout.strip()
    folder = work.with_name("tutorial")
    folder.mkdir()
    (folder / "script.py").write_text(tutorial())
    sources = {"TURNS": str(FILES / "turns.jsonl"), "RECORDS": str(FILES / "pr_records.jsonl")}
    environment = _environment(folder, WINNOW_URL=f"http://127.0.0.1:{port}", WINNOW_TOKEN=token, **sources)

    def run(programs: Path) -> subprocess.CompletedProcess[str]:
        words = [str(programs / "python"), "script.py"]
        return subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    alone = run(installed)
    assert "MissingPackage: A table needs pandas: pip install 'winnow-client[data]'" in alone.stderr
    done = run(make_environment(work.with_name("client"), [client], "data"))
    assert done.returncode == 0, done.stderr
    assert "num_rows: " in done.stdout and (folder / "exported/manifest.json").exists()


def _write_and_check_an_export(installed: Path, work: Path) -> None:
    recipe = work / "recipe.json"
    recipe.write_text(json.dumps({"formats": ["dpo"], "filter": {"status": "approved"}}))
    done = _say(installed, work, "export", "--project", "demo", "--recipe", "recipe.json", "--to", "exported")
    assert done.returncode == 0, done.stderr
    written = {Path(line).name for line in done.stdout.splitlines()}
    assert "manifest.json" in written
    assert written == {path.name for path in (work / "exported").iterdir()}

    again = _say(installed, work, "export", "--project", "demo", "--recipe", "recipe.json", "--to", "exported")
    assert again.returncode != 0 and "exported is not empty" in again.stderr


def _write_and_check_a_backup(installed: Path, work: Path) -> None:
    assert _say(installed, work, "backup", "winnow.tar").returncode == 0
    assert "exists already" in _say(installed, work, "backup", "winnow.tar").stderr
    restored = work / "restored"
    with tarfile.open(work / "winnow.tar") as archive:
        archive.extractall(restored, filter="data")
    listed = _say(installed, work, "token", "list", WINNOW_DATA="restored")
    assert "demo" in listed.stdout, listed.stderr
    kept = {path.relative_to(work / "data/files") for path in (work / "data/files").rglob("*") if path.is_file()}
    assert kept == {path.relative_to(restored / "files") for path in (restored / "files").rglob("*") if path.is_file()}
    assert (restored / "secret_key").read_text() == (work / "data/secret_key").read_text()
