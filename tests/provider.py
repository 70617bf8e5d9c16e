"""An OpenID Connect provider on this machine, as strict as a real one: code flow, PKCE, RS256, one use of each code."""

import base64
import hashlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.serving import serving, url_of

CLIENT, SECRET = "winnow", "client secret"


@cache
def usual_key() -> RSAKey:
    """Making one takes 60 ms."""
    return RSAKey.generate_key(2048, {"kid": "k1"})


@dataclass
class Provider:
    """Everyone is `person`. `in_userinfo` claims are not in the ID token, and `changed` ones are wrong there."""

    person: dict[str, Any] = field(default_factory=lambda: {"sub": "u-1", "preferred_username": "ada", "groups": []})
    in_userinfo: set[str] = field(default_factory=set)
    changed: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    key: RSAKey = field(default_factory=usual_key)
    signs_with: RSAKey | None = None
    issuer: str = ""
    secret_sent: list[str] | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, asked: dict[str, str]) -> str:
        """The address that the browser is sent back to."""
        assert asked["client_id"] == CLIENT and asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_hex(8)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, sent: dict[str, str], authorization: str) -> dict[str, Any] | None:
        asked = self.codes.pop(sent["code"], None)
        verifier = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        wrong = asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != sent["redirect_uri"]
        by_post = sent.get("client_id") == CLIENT and sent.get("client_secret") == SECRET and not authorization
        proved = by_post if self.secret_sent == ["client_secret_post"] else authorization == f"Basic {basic}"
        if asked is None or wrong or not proved:
            return None
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        claims |= {name: value for name, value in self.person.items() if name not in self.in_userinfo}
        header = {"alg": self.algorithm, "kid": (self.signs_with or self.key).kid}
        if self.algorithm == "none":
            parts = (base64.urlsafe_b64encode(orjson.dumps(part)).rstrip(b"=").decode() for part in (header, claims))
            signed = ".".join((*parts, ""))
        else:
            signed = jwt.encode(header, claims | self.changed, self.signs_with or self.key)
        return {"access_token": "opaque", "token_type": "Bearer", "expires_in": 60, "id_token": signed}


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        if path == "/authorize":
            self.send_response(302)
            self.send_header("Location", self.provider.authorize({k: v[0] for k, v in parse_qs(query).items()}))
            self.end_headers()
            return
        base = self.provider.issuer
        ends = {"authorization_endpoint": "authorize", "token_endpoint": "token"}
        ends |= {"jwks_uri": "keys", "userinfo_endpoint": "userinfo"}
        known = {
            "/.well-known/openid-configuration": {
                "issuer": base,
                "id_token_signing_alg_values_supported": ["none", "HS256", "RS256"],
                **{name: f"{base}/{end}" for name, end in ends.items()},
                **({"token_endpoint_auth_methods_supported": sent} if (sent := self.provider.secret_sent) else {}),
            },
            "/keys": {"keys": [self.provider.key.as_dict(private=False)]},
            "/userinfo": self.provider.person if self.headers["Authorization"] == "Bearer opaque" else None,
        }
        self._send(known.get(path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        self._send(self.provider.token(sent, self.headers.get("Authorization", "")))

    def _send(self, found: object) -> None:
        self.send_response(400 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(orjson.dumps(found or {"error": "invalid_grant"}))

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    with serving(_Handler) as server:
        made = _Handler.provider = Provider(issuer=url_of(server))
        settings.OIDC_ISSUER, settings.OIDC_NAME = made.issuer, "Acme"
        settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, SECRET
        yield made
