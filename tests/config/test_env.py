"""The environment's readers: a setting is right, or the process does not start and says which one is wrong."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from storages.backends.s3 import S3Storage

from config import env

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = str(ROOT / "config/settings.py")


class TestReaders:
    def test_text_takes_the_default_where_it_is_unset_or_empty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("X", raising=False)
        assert env.text("X", "a") == "a"
        monkeypatch.setenv("X", "")
        assert env.text("X", "a") == "a"
        monkeypatch.setenv("X", "b")
        assert env.text("X", "a") == "b"

    def test_choice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("X", "docker")
        assert env.choice("X", "auto", {"auto", "docker"}) == "docker"
        monkeypatch.setenv("X", "dokcer")
        with pytest.raises(ImproperlyConfigured, match="X is 'dokcer'; it must be one of auto, docker"):
            env.choice("X", "auto", {"auto", "docker"})

    @pytest.mark.parametrize(("given", "read"), [("1", True), ("TRUE", True), ("off", False), ("0", False)])
    def test_flag(self, monkeypatch: pytest.MonkeyPatch, given: str, read: bool) -> None:
        monkeypatch.setenv("X", given)
        assert env.flag("X", default=not read) is read

    @pytest.mark.parametrize("given", ["2", "ja", "y", " "])
    def test_a_flag_of_another_word_is_refused(self, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
        monkeypatch.setenv("X", given)
        with pytest.raises(ImproperlyConfigured, match="X is"):
            env.flag("X", default=True)

    @pytest.mark.parametrize(
        ("given", "read"),
        [
            ("", True),
            ("1", True),
            ("off", False),
            ("ollama, 10.0.0.0/8,fd00::/8,127.0.0.1", ("ollama", "10.0.0.0/8", "fd00::/8", "127.0.0.1")),
        ],
    )
    def test_private_hosts(self, monkeypatch: pytest.MonkeyPatch, given: str, read: object) -> None:
        monkeypatch.setenv("X", given)
        assert env.private_hosts("X", default=True) == read

    @pytest.mark.parametrize(
        "given", ["10.0.0.1/8", "10.0.0/8", "2", "y", "0.0.0.0/0", "::/0", "http://host", "a b", "*"]
    )
    def test_private_hosts_of_another_form_are_refused(self, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
        monkeypatch.setenv("X", given)
        with pytest.raises(ImproperlyConfigured, match="X names"):
            env.private_hosts("X", default=False)

    @pytest.mark.parametrize("given", ["0", "65536", "-1", "8e3", "80.5", "eighty"])
    def test_a_number_outside_its_range_is_refused(self, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
        monkeypatch.setenv("X", given)
        with pytest.raises(ImproperlyConfigured, match="X is"):
            env.number("X", 8000, low=1, high=65535)

    def test_roles_of_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("X", "cn=a,dc=b=curator@acme|beta; leads=admin@acme;ops=admin@acme ;")
        assert env.group_roles("X") == {
            "acme": {"curator": {"cn=a,dc=b"}, "admin": {"leads", "ops"}},
            "beta": {"curator": {"cn=a,dc=b"}},
        }

    @pytest.mark.parametrize("given", ["a", "a=admin", "=admin@acme", "a=admin@", "a=owner@acme", "a=@acme"])
    def test_roles_of_groups_of_another_form_are_refused(self, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
        monkeypatch.setenv("X", given)
        with pytest.raises(ImproperlyConfigured, match="X has the rule"):
            env.group_roles("X")

    def test_names_leave_out_what_is_empty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("X", " a, ,b ,")
        assert env.names("X") == ["a", "b"]

    def test_folder_is_created_and_must_be_writable(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("X", str(tmp_path / "new" / "data"))
        assert env.folder("X", tmp_path).is_dir()
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("X", str(tmp_path / "file"))
        with pytest.raises(ImproperlyConfigured, match="cannot be created"):
            env.folder("X", tmp_path)

    @pytest.mark.parametrize("given", ["mysql://host/db", "winnow", "//host"])
    def test_a_url_of_another_scheme_is_refused_without_repeating_its_password(
        self, monkeypatch: pytest.MonkeyPatch, given: str
    ) -> None:
        monkeypatch.setenv("X", given)
        with pytest.raises(ImproperlyConfigured) as refusal:
            env.url("X", "sqlite:///x", schemes={"sqlite", "postgres"})
        assert given not in str(refusal.value)

    def test_files_of_a_folder_are_stored_in_that_folder(self) -> None:
        folder, entry = env.storage("X", "file:///srv/files")
        assert folder == "/srv/files" and entry["BACKEND"].endswith("FileSystemStorage")

    @pytest.mark.parametrize(
        ("given", "prefix"),
        [
            ("s3://bucket", ""),
            ("s3://bucket/", ""),
            ("s3://bucket/team/winnow", "team/winnow"),
            ("s3://bucket/a/", "a"),
        ],
    )
    def test_files_of_a_bucket_are_stored_below_its_prefix(self, given: str, prefix: str) -> None:
        _, entry = env.storage("X", given)
        stored = S3Storage(**entry["OPTIONS"])
        assert (stored.bucket_name, stored.location) == ("bucket", prefix)

    @pytest.mark.parametrize("given", ["file://srv/files", "s3://", "s3:///prefix"])
    def test_storage_without_a_folder_or_bucket_is_refused(self, given: str) -> None:
        with pytest.raises(ImproperlyConfigured, match="X must name"):
            env.storage("X", given)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PORT": "eighty"}, "PORT"),
        ({"DEBUG": "maybe"}, "DEBUG"),
        ({"SANDBOX": "jail"}, "SANDBOX"),
        ({"DATABASE_URL": "oracle://db"}, "DATABASE_URL"),
        ({"CELERY_BROKER_URL": "kafka://b"}, "CELERY_BROKER_URL"),
        ({"SECRET_KEY": "short"}, "SECRET_KEY"),
        ({"BIND": "192.0.2.1", "SECRET_KEY": ""}, "SECRET_KEY"),
        ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        ({"FILES_URL": "s3://"}, "FILES_URL"),
        ({"OIDC_ISSUER": "http://login.example.org"}, "OIDC_ISSUER"),
        ({"OIDC_ISSUER": "https://login.example.org"}, "OIDC_CLIENT_ID"),
        ({"OIDC_ROLES": "staff=owner@acme"}, "OIDC_ROLES"),
        ({"API_REQUESTS_PER_MINUTE": "1"}, "API_REQUESTS_PER_MINUTE"),
    ],
)
def test_the_product_does_not_start_on_nonsense(
    variables: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"WINNOW_DATA": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=said):
        runpy.run_path(SETTINGS)


def _secret_key(folder: Path, **variables: str) -> str:
    """The SECRET_KEY in the settings of a server that others can reach, or their error."""
    values = {"WINNOW_DATA": str(folder), "BIND": "0.0.0.0", "SECRET_KEY": "", **variables}  # noqa: S104
    with pytest.MonkeyPatch.context() as patched:
        for name, value in values.items():
            patched.setenv(name, value)
        try:
            return str(runpy.run_path(SETTINGS)["SECRET_KEY"])
        except ImproperlyConfigured as error:
            return str(error)


def test_a_server_finds_the_key_that_another_process_made(tmp_path: Path) -> None:
    assert "GENERATE_KEY=1" in _secret_key(tmp_path)

    made = _secret_key(tmp_path, GENERATE_KEY="1")

    assert len(made) > 60
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600
    assert _secret_key(tmp_path) == _secret_key(tmp_path, GENERATE_KEY="1") == made
    assert _secret_key(tmp_path, SECRET_KEY="x" * 40) == "x" * 40
    assert [path.name for path in tmp_path.glob("*secret_key*")] == ["secret_key"]


def test_a_file_with_half_a_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("half")

    assert f"SECRET_KEY in {tmp_path}/secret_key must have at least 32" in _secret_key(tmp_path)


def test_a_process_starts_without_what_only_some_work_needs(tmp_path: Path) -> None:
    heavy = (
        *("litellm", "openai", "pandas", "pyarrow", "huggingface_hub", "authlib", "fastmcp", "mcp"),
        *("sklearn", "cleanlab"),
    )
    loaded = f"{set(heavy)} & set(sys.modules)"
    started = subprocess.run(
        [sys.executable, "-c", f"import sys, config.wsgi; print(sorted({loaded}))"],
        cwd=ROOT,
        env={**os.environ, "WINNOW_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert started.stdout == "[]\n"
