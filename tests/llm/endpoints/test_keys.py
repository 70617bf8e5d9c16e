"""A key goes only where the operator of the server allows it, in every project."""

import asyncio
from pathlib import Path

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from pytest_django import Settings

from config import env
from curation.llm.client.completion import CompletionRequest
from curation.llm.client.errors import Misconfigured
from curation.llm.client.gateway import target_of
from curation.llm.client.litellm_client import LiteLlmClient
from curation.llm.endpoints.discover import served_with_key
from curation.llm.endpoints.keys import KeyRule, read_rules, why_refused
from curation.llm.models import Endpoint
from curation.web.problems import Invalid
from tests.factories import make_bearer, make_endpoint, make_project, make_user
from tests.model_server import ModelServer

JSON = "application/json"
ROOT = Path(__file__).resolve().parents[3]
RULES = (
    "MODEL_KEY_*; HF_TOKEN=api-inference.huggingface.co|router.huggingface.co\n"
    "MODEL_KEY_TEAM=*.team.example:8443@alpha|beta; OPENAI_KEY=provider:openai|api.openai.com; ALPHA_KEY@alpha;"
)


class TestRules:
    def test_reads_names_hosts_and_projects(self) -> None:
        assert read_rules(RULES) == (
            KeyRule("MODEL_KEY_*"),
            KeyRule("HF_TOKEN", ("api-inference.huggingface.co", "router.huggingface.co")),
            KeyRule("MODEL_KEY_TEAM", ("*.team.example:8443",), ("alpha", "beta")),
            KeyRule("OPENAI_KEY", ("provider:openai", "api.openai.com")),
            KeyRule("ALPHA_KEY", (), ("alpha",)),
        )

    @pytest.mark.parametrize(
        "text",
        [
            *("hf_token", "*", "A*", "MODEL KEY", "1KEY", "MODEL_*_KEY", "HF_TOKEN=", "HF_TOKEN=a|", "HF_TOKEN@"),
            *("HF_TOKEN=https://host", "HF_TOKEN=host/v1", "HF_TOKEN=*", "HF_TOKEN=a.*.b", "HF_TOKEN=host@Team"),
            *("SECRET_KEY", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "WINNOW_DEMO_API_KEY", "HF_TOKEN, MODEL_KEY_A"),
        ],
    )
    def test_a_rule_of_another_form_stops_the_process(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MODEL_KEYS", text)
        with pytest.raises(ImproperlyConfigured, match="MODEL_KEYS"):
            env.model_keys("MODEL_KEYS", "MODEL_KEY_*")

    @pytest.mark.parametrize(
        ("variable", "model", "api_base", "project", "allowed"),
        [
            ("MODEL_KEY_A", "openai/x", "https://anywhere.example/v1", "gamma", True),
            ("HF_TOKEN", "openai/x", "https://router.huggingface.co/v1", "gamma", True),
            ("HF_TOKEN", "openai/x", "https://ROUTER.huggingface.co.:443/v1", "gamma", True),
            ("HF_TOKEN", "openai/x", "https://evil.example/v1", "gamma", False),
            ("HF_TOKEN", "openai/x", "https://router.huggingface.co.evil.example/v1", "gamma", False),
            ("HF_TOKEN", "openai/x", "https://evilrouter.huggingface.co/v1", "gamma", False),
            ("HF_TOKEN", "openai/x", "https://evil.example/router.huggingface.co", "gamma", False),
            ("HF_TOKEN", "openai/x", "https://router.huggingface.co@evil.example/v1", "gamma", False),
            ("HF_TOKEN", "huggingface/x", "", "gamma", False),
            ("MODEL_KEY_TEAM", "openai/x", "https://a.team.example:8443/v1", "alpha", True),
            ("MODEL_KEY_TEAM", "openai/x", "https://a.team.example/v1", "alpha", False),
            ("MODEL_KEY_TEAM", "openai/x", "https://team.example:8443/v1", "alpha", False),
            ("MODEL_KEY_TEAM", "openai/x", "https://a.team.example:8443/v1", "gamma", False),
            ("OPENAI_KEY", "openai/x", "", "gamma", True),
            ("OPENAI_KEY", "nebius/x", "", "gamma", False),
            ("OPENAI_KEY", "openai/x", "https://api.openai.com/v1", "gamma", True),
            ("ALPHA_KEY", "openai/x", "https://anywhere.example/v1", "alpha", True),
            ("ALPHA_KEY", "openai/x", "https://anywhere.example/v1", "gamma", False),
            *((name, "openai/x", "https://a.example", "alpha", False) for name in ("HF_TOKENS", "PATH", "MODEL_KEYS")),
            *(
                (name, "openai/x", "https://a.example", "alpha", False)
                for name in ("SECRET_KEY", "WINNOW_DEMO_API_KEY")
            ),
        ],
    )
    def test_where_a_key_may_go(
        self, settings: Settings, variable: str, model: str, api_base: str, project: str, allowed: bool
    ) -> None:
        settings.MODEL_KEYS = read_rules(RULES)
        why = why_refused(variable=variable, model=model, api_base=api_base, project=project)
        assert (why == "") is allowed
        assert allowed or ("MODEL_KEYS" in why and variable in why)

    def test_the_demos_key_goes_to_the_demos_model_in_its_project(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WINNOW_DEMO_API_BASE", "http://127.0.0.1:1234/v1")
        settings.MODEL_KEYS = env.model_keys("MODEL_KEYS", "MODEL_KEY_*")

        def is_sent(api_base: str, project: str) -> bool:
            given = {"variable": "WINNOW_DEMO_API_KEY", "model": "openai/x", "project": project}
            return not why_refused(**given, api_base=api_base)

        assert is_sent("http://127.0.0.1:1234/v1", "demo")
        assert not is_sent("http://127.0.0.1:1234/v1", "other") and not is_sent("https://evil.example/v1", "demo")
        monkeypatch.delenv("WINNOW_DEMO_API_BASE")
        monkeypatch.setenv("WINNOW_DEMO_MODEL", "openai/gpt-4o-mini")
        settings.MODEL_KEYS = env.model_keys("MODEL_KEYS", "MODEL_KEY_*")
        assert is_sent("", "demo") and not is_sent("https://evil.example/v1", "demo")


@pytest.mark.django_db
class TestEndpoints:
    def test_another_variable_is_refused_when_it_is_saved(self, client: Client, model_server: ModelServer) -> None:
        user = make_user()
        make_project("shell", user=user)
        body = {"name": "m", "model": "openai/x", "api_base": model_server.api_base, "api_key_env": "HF_TOKEN"}
        path = "/api/v1/projects/shell/models"
        answer = client.post(path, body, content_type=JSON, headers=make_bearer(user))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == "api_key_env" and "MODEL_KEYS" in answer.json()["detail"]
        body["api_key_env"] = "MODEL_KEY_A"
        assert client.post(path, body, content_type=JSON, headers=make_bearer(user)).status_code == 201
        patch = {"api_key_env": "HF_TOKEN"}
        assert client.patch(f"{path}/m", patch, content_type=JSON, headers=make_bearer(user)).status_code == 422
        assert Endpoint.objects.get().api_key_env == "MODEL_KEY_A"

    def test_a_key_of_one_host_does_not_go_along_when_the_base_url_changes(
        self, client: Client, settings: Settings
    ) -> None:
        settings.MODEL_KEYS = read_rules("MODEL_KEY_A=127.0.0.1:8001")
        user = make_user()
        make_endpoint(
            make_project("shell", user=user),
            "m",
            model="openai/x",
            api_base="http://127.0.0.1:8001/v1",
            api_key_env="MODEL_KEY_A",
        )
        answer = client.patch(
            "/api/v1/projects/shell/models/m",
            {"api_base": "http://127.0.0.1:9001/v1"},
            content_type=JSON,
            headers=make_bearer(user),
        )
        assert answer.status_code == 422 and "127.0.0.1:8001" in answer.json()["detail"]

    def test_an_endpoint_saved_before_is_refused_when_it_is_called(
        self, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf-secret")
        endpoint = make_endpoint(
            make_project("shell"), model="openai/x", api_base=model_server.api_base, api_key_env="HF_TOKEN"
        )
        request = CompletionRequest([{"role": "user", "content": "hello"}], {"max_tokens": 5})

        def call() -> None:
            asyncio.run(LiteLlmClient().complete(target_of(endpoint), request))

        with pytest.raises(Misconfigured, match="HF_TOKEN"):
            call()
        settings.MODEL_KEYS = read_rules("HF_TOKEN@other")
        with pytest.raises(Misconfigured, match="not allowed the key in HF_TOKEN for this project"):
            call()
        with pytest.raises(Invalid):
            served_with_key(api_base=model_server.api_base, variable="HF_TOKEN", project="shell")
        assert model_server.counts().asked == 0
        settings.MODEL_KEYS = read_rules(f"HF_TOKEN=127.0.0.1:{model_server.port}@shell")
        call()
        assert model_server.counts().keys == ["Bearer hf-secret"]

    @pytest.mark.parametrize("model", ["vertex_ai/gemini-pro", "bedrock/x", "watsonx/x"])
    def test_credentials_of_the_worker_do_not_go_to_a_chosen_host(
        self, client: Client, model_server: ModelServer, model: str
    ) -> None:
        user = make_user()
        project = make_project("shell", user=user)
        body = {"name": "m", "model": model, "api_base": model_server.api_base}
        answer = client.post("/api/v1/projects/shell/models", body, content_type=JSON, headers=make_bearer(user))
        assert answer.status_code == 422 and "credentials of the worker" in answer.json()["detail"]
        saved = make_endpoint(project, model=model, api_base=model_server.api_base)
        with pytest.raises(Misconfigured, match="credentials of the worker"):
            asyncio.run(
                LiteLlmClient().complete(target_of(saved), CompletionRequest([{"role": "user", "content": "hello"}]))
            )


def test_in_containers_only_the_workers_that_call_models_have_the_keys() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    files = {name: [file["path"] for file in service.get("env_file", [])] for name, service in services.items()}
    assert {name for name, paths in files.items() if "models.env" in paths} == {"worker-llm", "worker-rollout"}
    assert "settings.env" in files["web"] and "settings.env" in files["worker-llm"]
