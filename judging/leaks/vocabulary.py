"""Names that can be used without knowing a repository: tools, languages, libraries, ordinary words."""

import builtins
import keyword
import re
import sys
from functools import cache
from pathlib import Path

from judging.shell.words import word_set

# Lower case. Programs, and the usual words beside them: formats, standards, versions.
_TOOLS = word_set(
    "bash zsh grep egrep ripgrep awk gawk sed find xargs fdfind git github gitlab svn docker podman kubectl "
    "helm pytest "
    "unittest nose tox nox mypy ruff flake8 pylint black isort pyright pip pip3 pipx poetry uv conda venv virtualenv "
    "python python2 python3 pypy ipython node nodejs npm npx yarn pnpm bun deno jest vitest mocha eslint prettier "
    "webpack vite babel tsc cargo rustc rustfmt clippy go gofmt golangci-lint gcc clang cmake make ninja valgrind gdb "
    "lldb maven mvn gradle javac junit ruby bundler rake rspec rubocop php composer phpunit perl tar gzip curl wget jq "
    "tree diff patch strace pdb cprofile base64 md5sum sha256sum sha1 sha256 sha512 md5 utf8 utf16 utf-8 latin1 ascii "
    "x86_64 amd64 arm64 ipv4 ipv6 http2 oauth2 h2 iso8601 rfc3339 es6 es2015 py27 py3 py38 py39 py310 py311 py312 "
    "python3.8 python3.9 python3.10 python3.11 python3.12 site-packages dist-packages node_modules"
)
# Lower case, without hyphens or underscores. Products, formats and services in their usual spelling.
_BRANDS = word_set(
    "javascript typescript github gitlab postgresql mysql sqlite mongodb redis rabbitmq graphql openapi websocket "
    "websockets numpy scipy pandas pytorch tensorflow matplotlib fastapi nodejs macos ios ubuntu debian youtube "
    "stackoverflow readthedocs pypi devops cicd oauth openid mapreduce latex pdflatex activesupport activerecord "
    "rubygems rspec addresssanitizer asan ubsan llvm webassembly jsonschema wordpress elasticsearch dynamodb "
    "pyproject docstring docstrings changelog hotfix bugfix todo codebase filesystem readme swagger sqlalchemy "
    "beautifulsoup opencv xmlhttprequest urllib3 boto3 html5 html5lib css3 sass scss ipynb jupyter "
    "stringio bytesio iostream stdin stdout stderr devtools powershell commonmark kubernetes"
)
# First parts of dotted names that belong to a library or a language, not to the repository.
_LIBRARY_ROOTS = word_set(
    "np numpy pd pandas plt matplotlib sns scipy sp sklearn torch tf tensorflow jax requests httpx aiohttp "
    "flask django "
    "fastapi starlette pydantic sqlalchemy celery redis boto3 botocore yaml toml tomli lxml bs4 jinja2 click "
    "typer rich "
    "attr attrs tenacity urllib3 six dateutil pytz tqdm networkx sympy h5py dask xarray cv2 psycopg psycopg2 pymongo "
    "marshmallow werkzeug gunicorn twisted tornado trio anyio paramiko cryptography jwt docopt setuptools "
    "pkg_resources "
    "pytest mock hypothesis React ReactDOM Vue Angular lodash jQuery moment axios express console document window "
    "Math JSON Object Array String Number Promise Date process module exports Symbol Reflect Intl Buffer "
    "fmt strings strconv errors sync atomic context bytes bufio http ioutil filepath sort log reflect runtime unicode "
    "syscall regexp testing exec signal rand sql rpc "
    "std core alloc tokio serde anyhow thiserror System Arrays Collections Objects Collectors Files Paths Optional "
    "Stream List Map Set Integer Long Double Boolean Character Thread java javax org.junit Time ActiveSupport Rails "
    "e.g i.e github runner secrets matrix steps inputs"
)
_FRAMEWORK_NAMES = word_set(
    # Python libraries
    "ndarray arange linspace astype dtype DataFrame read_csv to_csv groupby iterrows GridSearchCV ForeignKey "
    "CharField TextField IntegerField BooleanField DateTimeField ManyToManyField OneToOneField on_delete related_name "
    "QuerySet ModelAdmin ModelForm DetailView ListView TemplateView FormView get_object get_queryset get_context_data "
    "get_absolute_url slug_field prepopulated_fields pre_save post_save pre_delete post_delete select_related "
    "prefetch_related get_or_create update_or_create bulk_create makemigrations add_argument parse_args "
    "ArgumentParser monkeypatch tmp_path capsys parametrize fixture BaseModel model_validate model_dump HTTPAdapter "
    "max_retries status_code raise_for_status nbformat nbformat_minor MagicMock side_effect return_value "
    "assert_called_once assert_called_with json_schema "
    # JavaScript and the browser
    "substring defaultProps propTypes PropTypes readFileSync writeFileSync beforeEach afterEach beforeAll afterAll "
    "toEqual toBe toThrow strictEqual deepEqual tsconfig "
    # Java
    "assertThat assertThrows "
    # Go, Rust, C, Ruby
    "WaitGroup WithCancel WithTimeout RWMutex Errorf Println Printf Sprintf goroutine waitgroup RUST_BACKTRACE "
    "uint64_t int64_t memcpy strcpy strncpy strlcpy strcat sprintf snprintf sscanf CMAKE_C_FLAGS CMAKE_BUILD_TYPE "
    "attr_reader attr_accessor before_action in_time_zone rpoplpush blmove "
    # Coined by everyone
    "file_path filename filepath line_number return_value error_message test_case test_data to_dict from_dict to_json "
    "self this super from_json user_id __main__ key_name max_length start_time end_time my_function foo_bar "
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT PYTHONPATH LD_LIBRARY_PATH find_file search_dir search_file end_of_edit "
    "scroll_down scroll_up line_length"
)
# Parts of paths that any repository may have.
GENERIC_PARTS = word_set(
    "src lib libs app apps bin cmd pkg internal core test tests testing spec specs unit integration e2e doc docs "
    "example examples script scripts tool tools config configs conf data fixtures include public static assets "
    "templates resources main java python js ts go build dist out target vendor node_modules packages crates modules "
    "component components utils util common helpers api web server client . .. ~ tmp var etc usr opt home dev "
    "null proc "
    "foo bar baz repo testbed workspace project workdir code a b settings models views controllers services handlers "
    "middleware migrations routes hooks store layouts pages styles locales mocks commands management jobs workers "
    "mailers policies serializers concerns actions workflows .github cache checkout"
)
GENERIC_FILES = word_set(
    "README README.md README.rst README.txt CHANGELOG.md CHANGELOG CHANGES.rst CHANGES.md CONTRIBUTING.md LICENSE "
    "setup.py setup.cfg pyproject.toml requirements.txt requirements-dev.txt tox.ini pytest.ini noxfile.py conftest.py "
    "manage.py __init__.py __main__.py main.py app.py package.json package-lock.json yarn.lock tsconfig.json index.js "
    "index.ts index.tsx index.html jest.config.js vite.config.ts webpack.config.js .eslintrc .eslintrc.json .babelrc "
    "go.mod go.sum main.go Cargo.toml Cargo.lock main.rs lib.rs mod.rs build.rs Makefile CMakeLists.txt configure.ac "
    "pom.xml build.gradle settings.gradle gradlew Gemfile Gemfile.lock Rakefile composer.json Dockerfile "
    "docker-compose.yml docker-compose.yaml .env .gitignore .pre-commit-config.yaml .travis.yml .gitlab-ci.yml main.c "
    "main.cpp Pipfile poetry.lock environment.yml mkdocs.yml conf.py Kconfig Jenkinsfile Procfile Vagrantfile BUILD "
    "BUILD.bazel WORKSPACE Chart.yaml values.yaml main.tf variables.tf outputs.tf versions.tf meson.build Podfile "
    "Package.swift mix.exs build.gradle.kts settings.gradle.kts build.sbt pubspec.yaml stack.yaml"
)
# Conventional names that say nothing without their folder.
CONVENTIONAL_FILES = word_set(
    "models.py views.py urls.py admin.py apps.py settings.py tests.py forms.py utils.py helpers.py base.py core.py "
    "cli.py config.py constants.py exceptions.py errors.py types.py utils.js utils.ts types.ts constants.ts config.js "
    "test.py run.py example.py test.js test.ts script.py reproduce.py repro.py utils.go types.go"
)
# Publishers of standards, as an alternative of a pattern: what a standard says is no secret.
STANDARDS = "RFC|ISO|IEC|IEEE|ECMA|PEP|BCP|DIN|POSIX|W3C|WHATWG|OWASP|CVE|CWE"
COMMON_FLAGS = word_set(
    "--dry-run --no-color --no-cache --max-depth --max-count --line-number --files-with-matches --ignore-case "
    "--name-only --name-status --no-pager --no-header --no-index --exclude-dir --include-dir --log-level "
    "--log-cli-level "
    "--no-cov --last-failed --exit-first --tb-short --collect-only --show-toplevel --no-deps --no-build-isolation "
    "--in-place --word-regexp --fixed-strings --extended-regexp --perl-regexp --only-matching --after-context "
    "--before-context --no-install --output-dir --config-file --data-dir --no-verify --set-upstream --no-edit"
)


@cache
def _standard_names() -> frozenset[str]:
    """The code-like names of `names.txt`: standard libraries, and what HTTP, ARIA, CSS and servers' settings name."""
    return word_set((Path(__file__).parent / "names.txt").read_text("utf-8"))


@cache
def _language_names() -> frozenset[str]:
    """Built-ins, keywords, standard modules and the methods of common types. Imported late: this costs milliseconds."""
    import argparse
    import collections
    import contextlib
    import dataclasses
    import datetime
    import functools
    import itertools
    import json
    import logging
    import os
    import pathlib
    import re
    import signal
    import subprocess  # noqa: S404 - only its names are read
    import tempfile
    import typing
    import unittest

    modules = (argparse, collections, contextlib, dataclasses, datetime, functools, itertools, json, logging, os)
    more = (os.path, pathlib, re, signal, subprocess, tempfile, typing, unittest, builtins, sys)
    types = (str, bytes, list, dict, set, int, float, pathlib.Path, unittest.TestCase, datetime.datetime, re.Pattern)
    names = {name for holder in (*modules, *more, *types) for name in dir(holder)}
    return frozenset(names | set(keyword.kwlist) | set(sys.stdlib_module_names))


# `dir1`, `test_file`, `example.txt`: common made-up names.
_PLACEHOLDER = re.compile(
    r"(?:my_?)?(?:dir|file|path|test|foo|bar|baz|tmp|temp|example|sample|demo|item|key|val|value|arg|user|name|line|step|"
    r"col|row|node|input|output|result|text|data)_?\d*(?:\.\w{1,6})?",
    re.IGNORECASE,
)


def is_placeholder(name: str) -> bool:
    """Whether a name is a common placeholder."""
    return _PLACEHOLDER.fullmatch(name) is not None


def is_ordinary(name: str) -> bool:
    """Whether a name says nothing about one repository: a tool, a brand, a built-in, a well-known library's name."""
    if (name.startswith("__") and name.endswith("__")) or is_placeholder(name):
        return True
    lower = name.lower()
    squashed = lower.replace("-", "").replace("_", "")
    return (
        lower in _TOOLS
        or (squashed in _BRANDS and squashed == lower)
        or name in _FRAMEWORK_NAMES
        or name in _language_names()
        or (lower if "-" in name else name) in _standard_names()
    )


def is_library_root(name: str) -> bool:
    """Whether `name.…` is a path into a library or the language rather than into the repository."""
    return name in _LIBRARY_ROOTS or name in sys.stdlib_module_names or hasattr(builtins, name)


VERY_COMMON = 900


@cache
def ranks() -> dict[str, int]:
    """Return the rank of each common word and of each stem, from 0."""
    found: dict[str, int] = {}
    for rank, word in enumerate((Path(__file__).parent / "words.txt").read_text("utf-8").split()):
        found.setdefault(word, rank)
        found.setdefault(stem(word), rank)
    return found


def is_common(word: str, upto: int = 4000) -> bool:
    """Whether a word, or another form of it, is among the `upto` most common ones."""
    lower = word.lower()
    rank = min(ranks().get(lower, upto), ranks().get(stem(lower), upto))
    return rank < upto


@cache
def _prefixes() -> frozenset[str]:
    return frozenset(word[:length] for word in ranks() for length in range(4, len(word) + 1))


def begins_common(piece: str) -> bool:
    """Whether a piece is the beginning of a common word (`serializ`)."""
    return piece.lower() in _prefixes()


_ENDINGS = re.compile(
    r"(?:isation|ization|ations?|ements?|ingly|edly|ings?|ions?|ness|ments?|ers?|ors?|ies|ied|ely|ly|ed|es|e|s|y)$"
)


@cache
def stem(word: str) -> str:
    """Cut the usual endings of a lower-case word, so that `decoded` and `decoding` are equal."""
    if len(word) < 5:
        return word.removesuffix("s") if len(word) == 4 else word
    cut = _ENDINGS.sub("", word)
    return cut if len(cut) >= 4 else word[: max(4, len(cut))]
