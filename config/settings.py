"""Settings of Winnow. Everything that differs between machines is read from the environment by `config.env`.

`docs/operations.md` lists every variable; a test compares that list with this file.
"""

import contextlib
import logging
import os
import secrets
import tempfile
import warnings
from pathlib import Path

import dj_database_url
import plotly
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.logs import logging_config
from config.telemetry import start_sentry

BASE_DIR = Path(__file__).resolve().parent.parent
WINNOW_DATA = env.folder("WINNOW_DATA", BASE_DIR / "data")

# --- access ----------------------------------------------------------------------------------------------------------
BIND = env.text("BIND", "127.0.0.1")
PORT = env.number("PORT", 8000, low=1, high=65535)
LOOPBACK_ONLY = BIND in {"127.0.0.1", "localhost", "::1"}
DEBUG = env.flag("DEBUG", default=False)
HTTPS = env.flag("HTTPS", default=False)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS")
# Private model servers are common on a local installation; a server that others can reach must allow them explicitly.
ALLOW_PRIVATE_MODEL_HOSTS = env.private_hosts("ALLOW_PRIVATE_MODEL_HOSTS", default=LOOPBACK_ONLY)
ALLOW_PRIVATE_IMPORT_HOSTS = env.private_hosts("ALLOW_PRIVATE_IMPORT_HOSTS", default=LOOPBACK_ONLY)
ALLOW_PRIVATE_WEBHOOK_HOSTS = env.private_hosts("ALLOW_PRIVATE_WEBHOOK_HOSTS", default=LOOPBACK_ONLY)
ALLOW_PRIVATE_HUB_HOSTS = env.private_hosts("ALLOW_PRIVATE_HUB_HOSTS", default=False)
# Which variables are tokens of hubs that exports are pushed to, and the hosts and projects that each is for.
HUB_TOKENS = env.key_rules("HUB_TOKENS")
# Keys of Langfuse and Phoenix servers.
TRACE_KEYS = env.key_rules("TRACE_KEYS")
# Which variables are keys of models, and the hosts and projects that each is for.
MODEL_KEYS = env.model_keys("MODEL_KEYS", "MODEL_KEY_*")
# Users who may create projects. A project's admins choose the hosts of its model endpoints.
PROJECT_CREATORS = env.creators("PROJECT_CREATORS", "staff,group:project-creators")


def _secret_key() -> str:
    """The key in the environment, else the one in the data folder, which is made once if this server may make one."""
    given, path = env.text("SECRET_KEY", ""), WINNOW_DATA / "secret_key"
    if not given and not path.exists():
        if not env.flag("GENERATE_KEY", default=LOOPBACK_ONLY):
            raise ImproperlyConfigured(
                "SECRET_KEY must be set when BIND is not a loopback address. "
                "Where all processes share WINNOW_DATA, GENERATE_KEY=1 makes one there instead"
            )
        # Linked into place: of processes that start at the same time one wins, and none reads half a key.
        try:
            with tempfile.NamedTemporaryFile("w", dir=WINNOW_DATA, prefix=".secret_key.") as made:
                made.write(secrets.token_urlsafe(64))
                made.flush()
                with contextlib.suppress(FileExistsError):
                    path.hardlink_to(made.name)
        except OSError as error:
            error.filename = str(path)  # a full disk is named with its folder
            raise
    try:
        key = given or path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"SECRET_KEY is not set, and its file cannot be read: {error}") from None
    if len(key) < 32:
        raise ImproperlyConfigured(
            f"{'SECRET_KEY' if given else f'SECRET_KEY in {path}'} must have at least 32 characters"
        )
    return key


SECRET_KEY = _secret_key()

# --- apps and middleware ---------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "curation.dashboard",
    "curation.evaluations",
    "curation.predictions",
    "curation.exports",
    "curation.review",
    "curation.duels",
    "curation.trajectories",
    "curation.scenarios",
    "curation.labels",
    "curation.assignments",
    "curation.guarantees",
    "curation.samples",
    "curation.imports",
    "curation.runs",
    "curation.webhooks",
    "curation.llm",
    "curation.notifications",
    "curation.projects",
    "curation.web",
    "ninja",
    "django_htmx",
    "axes",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "csp",
    "django.contrib.humanize",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "curation.dashboard.system.static_files.WinnowStaticFiles",
]
MIDDLEWARE = [
    "curation.web.http.middleware.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "curation.web.http.middleware.CompressionMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "curation.web.http.middleware.PageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # before any middleware that reads the body: idempotency keys, CSRF tokens of forms
    "curation.web.http.middleware.UploadLimitMiddleware",
    "curation.web.http.middleware.ApiMiddleware",
    "curation.projects.sign_in.backend.CredentialMiddleware",
    "curation.web.http.middleware.IdempotencyMiddleware",
    "curation.web.http.middleware.ProblemMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
FORM_RENDERER = "curation.web.widgets.WidgetRenderer"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.shell.shell",
            ],
            "builtins": [
                "curation.web.text.figures",
                "curation.web.lists.pages",
                "curation.web.text.markup",
                "curation.web.forms",
                "curation.projects.access",
            ],
            "libraries": {"sample_row": "curation.samples.list.pages", "shell": "config.shell"},
        },
    }
]

# --- database --------------------------------------------------------------------------------------------------------
DATABASE_URL = env.database_url("DATABASE_URL", f"sqlite:///{WINNOW_DATA / 'winnow.sqlite3'}")
DATABASES = {"default": dj_database_url.parse(DATABASE_URL, conn_max_age=60, conn_health_checks=True)}
# PgBouncer gives each transaction any connection of its own, and a cursor on the server belongs to one.
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = env.flag("DATABASE_POOLED", default=False)
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["ENGINE"] = "config.sqlite3"
    # IMMEDIATE takes the write lock at BEGIN, so two workers wait for it instead of failing half-way.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; "
            "PRAGMA cache_size=-65536; PRAGMA mmap_size=67108864;"
        ),
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- jobs ------------------------------------------------------------------------------------------------------------
CELERY_BROKER_URL = env.url(
    "CELERY_BROKER_URL", "filesystem://localhost", schemes={"filesystem", "redis", "rediss", "amqp", "amqps"}
)
CELERY_TASK_IGNORE_RESULT = True
# The database has the work; a message only announces it. The reaper sends lost messages again.
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(WINNOW_DATA / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "reap": {"task": "curation.runs.tasks.reap", "schedule": 5.0, "options": {"expires": 5.0}},
    "deletions": {"task": "curation.projects.tasks.continue_deletions", "schedule": 10.0, "options": {"expires": 10.0}},
    "uploads": {"task": "curation.imports.tasks.sweep", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "images": {"task": "curation.trajectories.tasks.sweep", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "intake": {"task": "curation.imports.tasks.take_in", "schedule": 10.0, "options": {"expires": 10.0}},
    "pulls": {"task": "curation.imports.tasks.pull", "schedule": 60.0, "options": {"expires": 60.0}},
    "guarantees": {
        "task": "curation.review.tasks.carry_out_guarantees",
        "schedule": 10.0,
        "options": {"expires": 10.0},
    },
    "scan": {"task": "curation.review.tasks.scan", "schedule": 10.0, "options": {"expires": 10.0}},
    "move": {"task": "curation.runs.tasks.move_rows", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "exports": {"task": "curation.exports.tasks.delete_old", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "rounds": {"task": "curation.exports.tasks.export_reviewed", "schedule": 60.0, "options": {"expires": 60.0}},
    "webhooks": {"task": "curation.webhooks.tasks.deliver", "schedule": 10.0, "options": {"expires": 10.0}},
}
if CELERY_BROKER_URL.startswith("filesystem"):
    _BROKER = WINNOW_DATA / "broker"
    for _folder in ("messages", "processed", "control"):
        (_BROKER / _folder).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_BROKER / "messages"),
        "data_folder_out": str(_BROKER / "messages"),
        "processed_folder": str(_BROKER / "processed"),
        "control_folder": str(_BROKER / "control"),
        "polling_interval": 0.05,
    }
    # Nothing reads remote-control messages on this transport; their files would pile up.
    CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
    CELERY_TASK_SEND_SENT_EVENT = False
if CELERY_BROKER_URL.startswith("redis"):
    # A Redis that accepts connections and does not answer must not hold a request: the database has the work.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "socket_connect_timeout": 2,
        "socket_timeout": 2,
        "max_retries": 1,
        "interval_start": 0,
    }
SANDBOX = env.choice("SANDBOX", "auto", {"auto", "docker", "bubblewrap", "none"})
# Rollouts mostly wait for models, so one process keeps this many sessions open at once.
SANDBOX_SESSIONS = env.number("SANDBOX_SESSIONS", 64, low=1, high=1024)

# With Redis all web processes share the rate limit's counts; without it each process counts for itself.
if CELERY_BROKER_URL.startswith("redis"):
    CACHES = {
        "default": {
            "BACKEND": "config.redis_cache.Cache",
            "LOCATION": CELERY_BROKER_URL,
            "OPTIONS": {
                "serializer": "config.redis_cache.JsonSerializer",
                "socket_connect_timeout": 1,
                "socket_timeout": 1,
            },
        }
    }

# --- sign-in ---------------------------------------------------------------------------------------------------------
SESSION_ENGINE = "curation.projects.sign_in.backend"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "curation.projects.sign_in.backend.Backend"]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_HANDLER = "curation.projects.sign_in.limits.SignInLimits"
AXES_CLIENT_IP_CALLABLE = "curation.projects.sign_in.limits.client_address"
AXES_LOCKOUT_TEMPLATE = "errors/429.html"
# Sign-in by an OpenID Connect provider, and the roles that its groups give: `docs/sign-in.md`.
OIDC_ISSUER = env.issuer("OIDC_ISSUER")
OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID", "")
OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_SECRET", "")
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    raise ImproperlyConfigured("OIDC_CLIENT_ID must be set beside OIDC_ISSUER")
OIDC_NAME = env.text("OIDC_NAME", "single sign-on")
OIDC_SCOPES = env.text("OIDC_SCOPES", "openid profile email")
OIDC_USERNAME_CLAIM = env.text("OIDC_USERNAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", "groups")
OIDC_ROLES = env.group_roles("OIDC_ROLES")
SECOND_FACTOR = env.choice("SECOND_FACTOR", "optional", {"optional", "required"})
OTP_TOTP_ISSUER = "Winnow"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
CSRF_FAILURE_VIEW = "curation.web.http.middleware.csrf_failure"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
TRUST_PROXY = env.flag("TRUST_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUST_PROXY else None
SECURE_REDIRECT_EXEMPT = [r"^api/v1/(health|ready)$"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "base-uri": [NONE],
        "object-src": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- files -----------------------------------------------------------------------------------------------------------
STATIC_URL = "static/"
# Collected when the image is built, or when `serve` or `demo` starts; until then the source folders are served.
STATIC_ROOT = Path(env.text("STATIC_ROOT", str(WINNOW_DATA / "static")))
STATICFILES_DIRS = [BASE_DIR / "static", ("plotly", Path(plotly.__file__).parent / "package_data")]
WHITENOISE_USE_FINDERS = True
DOCS_FOLDER = BASE_DIR / "docs"
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
warnings.filterwarnings("ignore", message="No directory at", module="django.core.handlers.base")
FILES_URL = env.url("FILES_URL", f"file://{WINNOW_DATA / 'files'}", schemes={"file", "s3"})
MEDIA_ROOT, DEFAULT_STORAGE = env.storage("FILES_URL", FILES_URL)
STORAGES = {
    "default": DEFAULT_STORAGE,
    "staticfiles": {"BACKEND": "curation.dashboard.system.static_files.HashedFiles"},
}
MAX_UPLOAD_BYTES = env.number("MAX_UPLOAD_MB", 2048, low=1, high=1_000_000) * 1024 * 1024
KEEP_UPLOADS_DAYS = env.number("KEEP_UPLOADS_DAYS", 7, low=1, high=3650)
# Sources of imports besides uploads and public addresses. Everyone who may launch a run can read all of them.
IMPORT_FOLDERS = env.allowed_sources("IMPORT_FOLDERS")
# Files below PROJECT/ in this folder are imported when they appear, so write access there is the right to import.
WATCH_FOLDER = env.watched_folder("WATCH_FOLDER")
# Harbor runs tasks that people bring, with the rights of the worker's Docker, so only the operator switches it on.
HARBOR_COMMAND = env.text("HARBOR_COMMAND", "")
HARBOR_PROVIDERS = env.harbor_providers("HARBOR_PROVIDERS", "docker")
HARBOR_FOLDER = Path(env.text("HARBOR_FOLDER", str(WINNOW_DATA / "harbor")))
# The trainer of uplift experiments, which only the operator names.
TRAIN_COMMAND = env.text("TRAIN_COMMAND", "")
MAX_LINE_BYTES = env.number("MAX_LINE_MB", 16, low=1, high=1024) * 1024 * 1024
MAX_UNPACKED_BYTES = env.number("MAX_UNPACKED_MB", 20_480, low=1, high=10_000_000) * 1024 * 1024
MAX_UNPACK_RATIO = env.number("MAX_UNPACK_RATIO", 200, low=2, high=100_000)
DATA_UPLOAD_MAX_MEMORY_SIZE = 20 * 1024 * 1024
FILE_UPLOAD_TEMP_DIR = str(WINNOW_DATA)
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "curation.web.files.ShortNameUploadHandler",
]

# prometheus-client reads this variable at its first import: web processes count into shared files in this folder.
METRICS_FOLDER = env.folder("PROMETHEUS_MULTIPROC_DIR", WINNOW_DATA / "metrics")
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_FOLDER)
# Empty on a loopback server: everyone may read the metrics and the readiness of its parts.
METRICS_TOKEN = env.text("METRICS_TOKEN", "")

# --- other -----------------------------------------------------------------------------------------------------------
API_REQUESTS_PER_MINUTE = env.number("API_REQUESTS_PER_MINUTE", 60_000, low=60, high=10_000_000)
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
LOG_FORMAT = env.choice("LOG_FORMAT", "text", {"text", "json"})
LOGGING = logging_config(LOG_FORMAT, env.choice("LOG_LEVEL", "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"}))
logging.captureWarnings(LOG_FORMAT == "json")
SENTRY_DSN = env.text("SENTRY_DSN", "")
if SENTRY_DSN:
    start_sentry(SENTRY_DSN)
