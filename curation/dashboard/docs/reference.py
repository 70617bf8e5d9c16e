"""The pages of the reference that are made from the code: the command line, the kinds of runs, the Python client."""

import argparse
import dataclasses
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from pydantic import BaseModel

import winnow_client as client
from curation.runs.kinds import Kind, Pipeline, listed_kinds
from curation.runs.pages.forms import FALLBACKS, HELP
from winnow.commands import COMMANDS, mcp_parser
from winnow_client import schemas
from winnow_client.calls import call
from winnow_client.command import remote_parser

Schema = Mapping[str, Any]
# Parameters that the launch form does not have to explain.
WORDS = {
    "model": "The name of a model endpoint.",
    "king_model": "The king: the name of a model endpoint.",
    "challenger_model": "The challenger: the name of a model endpoint.",
    "judges": "The names of the model endpoints that judge.",
    "filter": "Selects the input of the run, by {}.",
}
# One is started by workers, and one is Django's.
NOT_SHOWN = {"work_alone", "migrate"}
MODULES = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])|~")
QUOTED = re.compile(r"((?:->|:) |\[)'([^']+)'")
# The mode of an object of the client, which only type checkers read.
MODE = re.compile(r"\[M\]|, M(?=\])")
MEMBERS = ("member", "is")


def command_line() -> str:
    """Every command with its options, as `--help` shows them."""
    own = sorted(name for name, app in get_commands().items() if app.startswith("curation."))
    parsers = {_called(name): _django_parser(name) for name in own}
    parsers |= {"remote": remote_parser(), "mcp": mcp_parser()}
    direct = [name for name in COMMANDS if name in parsers]
    others = [name for name in own if _called(name) not in COMMANDS and name not in NOT_SHOWN]
    return "\n\n".join(
        [
            "# Command line",
            "`winnow` is the command of the installed package. `winnow COMMAND --help` lists its options. In a clone, "
            "`python manage.py COMMAND` does the same. The database and the folder are those of the "
            "[settings](operations.md#settings); only `remote` and `mcp` work on a site elsewhere.",
            *(_command(name, f"winnow {name}", parsers[name]) for name in direct),
            *(_command(name, f"winnow manage {name}", parsers[name]) for name in others),
            "## manage\n\n`winnow manage COMMAND` runs Django's own commands too, such as `createsuperuser`.",
        ]
    )


def run_kinds() -> str:
    """Every kind of run that a person or a script launches, with its parameters."""
    parts = [
        "# Kinds of runs",
        "`POST /projects/{slug}/runs` takes `kind` and `params`, `winnow run KIND --param NAME=VALUE` the same on a "
        "terminal, and a file of `--config` too. Unknown parameters are refused. `POST …/runs/estimate` returns the "
        "work and cost of a launch. A [recipe](api.md#exports) has a table of its own.",
    ]
    for pipeline in Pipeline:
        parts += [_kind(kind) for kind in listed_kinds() if kind.pipeline == pipeline]
    return "\n\n".join(parts)


def python_client() -> str:
    """Every public class of `winnow_client` with its calls and fields."""
    classes = [getattr(client, name) for name in client.__all__]
    errors = [one for one in classes if issubclass(one, BaseException)]
    first = [client.Winnow, client.AsyncWinnow, client.Project]
    others = [one for one in classes if one not in (*errors, *first)]
    responses = [one for one in vars(schemas).values() if inspect.isclass(one) and one.__module__ == schemas.__name__]
    return "\n\n".join(
        [
            "# Python client: classes",
            "The public classes of `winnow_client`. [Python client](client.md) describes their behaviour. Calls of "
            "`AsyncWinnow`, and of the objects that it returns, are awaited.",
            *map(_class, [*first, *others]),
            "## Errors",
            _table(("class", "is"), [(f"`{one.__name__}`", _cell(inspect.getdoc(one) or "")) for one in errors]),
            "## Responses",
            "The classes of `winnow_client.schemas`, which calls return. The [REST API](api.md) describes them.",
            _table(("class", "fields"), [(f"`{one.__name__}`", ", ".join(_fields(one))) for one in responses]),
        ]
    )


# Generated documents: name and the function that returns its Markdown.
GENERATED: dict[str, Callable[[], str]] = {
    "commands": command_line,
    "run-kinds": run_kinds,
    "client-reference": python_client,
}


def _called(name: str) -> str:
    """The name of a command of ours on the command line, which has hyphens where Django's modules have none."""
    return named if (named := name.replace("_", "-")) in COMMANDS else name


def _django_parser(name: str) -> argparse.ArgumentParser:
    command = load_command_class(get_commands()[name], name)
    return command.create_parser("winnow", name)


def _command(heading: str, called: str, parser: argparse.ArgumentParser) -> str:
    base = {action.dest for action in BaseCommand().create_parser("", "")._actions}
    own = [action for action in parser._actions if action.dest not in base]
    nested = [action for action in own if isinstance(action, argparse._SubParsersAction)]
    shown = [action for action in own if action not in nested]
    usage = "" if nested and not shown else f"    {_usage(called, own)}"
    parts = [f"## {heading}", parser.description or "", usage, _options(shown, parser)]
    for action in nested:
        help_of = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, inner in action.choices.items():
            inner_own = [one for one in inner._actions if one.dest not in base]
            parts += [_sentence(help_of.get(name, "")), f"    {_usage(f'{called} {name}', inner_own)}"]
            parts.append(_options(inner_own, inner))
    return "\n\n".join(filter(None, parts))


def _usage(called: str, actions: Sequence[argparse.Action]) -> str:
    words = [called]
    for action in actions:
        choices = "" if action.option_strings else "|".join(map(str, action.choices or ()))
        value = action.metavar or choices or (action.dest.upper() if action.nargs != 0 else "")
        word = " ".join(filter(None, [next(iter(action.option_strings), ""), str(value)]))
        words.append(word if action.required else f"[{word}]")
    return " ".join(words)


def _options(actions: Sequence[argparse.Action], parser: argparse.ArgumentParser) -> str:
    rows = []
    for action in actions:
        what = _sentence(parser._get_formatter()._expand_help(action)) if action.help else ""
        given = action.default
        if given not in (None, "", False, []) and "default" not in what.lower():
            what += f" Default: `{given}`."
        rows.append((f"`{', '.join(action.option_strings) or action.metavar or action.dest.upper()}`", _cell(what)))
    return _table(("option", "does"), rows) if rows else ""


def _kind(kind: Kind[Any]) -> str:
    schema = kind.params.model_json_schema()
    narrowed_by = ", ".join(f"`{name}`" for name in kind.filter.model_fields) if kind.filter else ""
    rows = []
    for name, field in schema["properties"].items():
        if name not in kind.set_at_launch:
            words = WORDS.get(name, "").format(narrowed_by)
            what = field.get("description") or HELP.get(name, "") or words
            rows.append((f"`{name}`", _type(field), _default(name, kind.params), _cell(what)))
    about = [kind.summary, inspect.cleandoc(kind.params.__doc__ or ""), f"A token needs the scope `{kind.scope}`."]
    table = _table(("parameter", "type", "default", "is"), rows)
    return "\n\n".join([f"## {kind.name}", *filter(None, about), table])


def _type(field: Schema) -> str:
    if reference := field.get("$ref"):
        return str(reference.rpartition("/")[2]).lower()
    if inner := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(one) for one in inner if one.get("type") != "null"))
    if values := field.get("enum") or ([field["const"]] if "const" in field else []):
        return " or ".join(f"`{value}`" for value in values)
    kind = str(field.get("type", "value"))
    if kind == "array":
        return f"list of {_type(field['items'])}"
    named = {"string": "text", "integer": "whole number", "boolean": "`true` or `false`"}.get(kind, kind)
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum", field.get("exclusiveMaximum"))
    over, to = "over" if "exclusiveMinimum" in field else "from", "below" if "exclusiveMaximum" in field else "to"
    limits = [f"{over} {low}" if low is not None else "", f"{to} {high}" if high is not None else ""]
    return " ".join(filter(None, [named, *limits]))


def _default(name: str, model: type[BaseModel]) -> str:
    field = model.model_fields[name]
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value in (None, "", [], {}):
        return f"the setting `{'.'.join(FALLBACKS[name])}`" if value is None and name in FALLBACKS else "none"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _class(kind: type) -> str:
    rows = [(field, "") for field in _fields(kind)]
    for name, member in _members(kind):
        about = "" if name == kind.__name__ else inspect.getdoc(member) or ""
        if isinstance(member, property):
            read = inspect.signature(member.fget) if member.fget else ""
            rows.append((f"`{name}`: {_plain(str(read))}", _cell(about)))
        else:
            rows.append((f"`{name}{_signature(member)}`", _cell(about)))
    return "\n\n".join(
        filter(None, [f"## {kind.__name__}", inspect.cleandoc(kind.__doc__ or ""), _table(MEMBERS, rows)])
    )


def _fields(kind: type) -> list[str]:
    if issubclass(kind, BaseModel):
        given = {name: field.annotation for name, field in kind.model_fields.items()}
    else:
        given = inspect.get_annotations(kind) if dataclasses.is_dataclass(kind) else {}
    return [f"`{name}`: {_plain(inspect.formatannotation(one))}" for name, one in given.items()]


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members, those of the base classes last. The one that makes it has the name of the class."""
    seen: set[str] = set()
    for base in kind.__mro__:
        for name, member in vars(base).items():
            is_shown = not name.startswith(("_", "model_")) and isinstance(member, FunctionType | property | call)
            is_made = name == "__init__" and kind in (client.Winnow, client.AsyncWinnow)
            if (is_shown or is_made) and name not in seen and base.__module__.startswith(client.__name__):
                seen.add(name)
                yield kind.__name__ if is_made else name, member.function if isinstance(member, call) else member


def _signature(function: Callable[..., Any]) -> str:
    """The parameters and the return type, without the names of modules."""
    signature = inspect.signature(function)
    given = [
        one.replace(annotation=one.empty) if one.kind is one.VAR_KEYWORD else one
        for name, one in signature.parameters.items()
        if name != "self"
    ]
    return _plain(str(signature.replace(parameters=given)).removesuffix(" -> None"))


def _plain(text: str) -> str:
    return MODE.sub("", QUOTED.sub(r"\1\2", MODULES.sub("", text))).removeprefix("(self) -> ")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:]}{'' if not text or text.endswith(('.', ')')) else '.'}"


def _cell(text: str) -> str:
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
