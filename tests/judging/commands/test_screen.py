"""Extraction and comparison of commands, family by family."""

import pytest

from judging.commands.screen import (
    AWS,
    BASH_BLOCK,
    FAILED,
    SHELL_SESSION,
    CommandFamily,
    extract,
    prefix_family,
    score_command,
)
from judging.commands.words import difference, same_command

LS = "aws s3 ls"


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        (LS, LS),
        (f"  {LS}\n", LS),
        (f"```\n{LS}\n```", LS),
        (f"```bash\n{LS}\n```\nThis lists buckets.", LS),
        (f"Sure! Run this:\n   {LS} --region x", f"{LS} --region x"),
        (f"{LS}\naws s3 mb s3://x", LS),
        # A fence later in the text is no fence at the start: its line is kept, and is no command either.
        (f"Run:\n```\n{LS}\n```", LS),
        ("`aws s3 ls`", "`aws s3 ls`"),
        ("awsome s3 ls", "awsome s3 ls"),
        ("aws", "aws"),
        ("```\nls\n```", "ls"),
        ("", ""),
    ],
)
def test_the_first_line_with_the_prefix_is_the_command_else_the_whole_text(answer: str, command: str) -> None:
    assert extract(answer, AWS) == command


def test_each_column() -> None:
    exact = score_command(LS, f" {LS} ", AWS)
    assert exact.fmt and exact.xtr and exact.exact and exact.service_and_op and exact.exact_shell
    assert exact.mark == "exact"
    fenced = score_command(f"```\n{LS}\n```", LS, AWS)
    assert (fenced.fmt, fenced.xtr, fenced.exact) == (False, True, True)
    other = score_command("aws s3api ls", LS, AWS)
    # The published figures count the operation by itself; together they are a column of their own.
    assert (other.svc, other.op_token, other.service_and_op, other.mark) == (False, True, False, "differs")
    prose = score_command("To list s3 buckets use ls", LS, AWS)
    assert (prose.fmt, prose.xtr, prose.mark) == (False, False, "none")


def test_words_are_compared_by_place_even_without_a_command() -> None:
    """As the published figures do: `To s3 ls …` has the expected words at their places."""
    score = score_command("use s3 ls please", LS, AWS)
    assert (score.xtr, score.svc, score.op_token) == (False, True, True)
    assert not score_command("aws", LS, AWS).svc


def test_an_error_has_every_flag_false() -> None:
    assert not any((FAILED.fmt, FAILED.xtr, FAILED.exact, FAILED.svc, FAILED.op_token, FAILED.exact_shell))
    assert score_command("", LS, AWS).mark == "none" == FAILED.mark


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ("aws x y --a 1 --b 2", "aws x y --b 2 --a 1", True),
        ("aws x y --a=1", "aws x y --a 1", True),
        ("aws x y --a '1'", 'aws x y --a "1"', True),
        ("aws  x   y", "aws x y", True),
        ("aws x y --a 1 2", "aws x y --a 2 1", False),
        ("aws x y --a 1 --a 2", "aws x y --a 2 --a 1", True),
        ("aws x y --a 1 --a 1", "aws x y --a 1", False),
        ("aws y x", "aws x y", False),
        ("aws x y -- --a", "aws x y --a", False),
        ("aws x y --n -5", "aws x y --n 5", False),
        ("aws x y --n -5 --m 1", "aws x y --m 1 --n -5", True),
        ("ls && pwd", "pwd && ls", False),
        ("cat <<E\na\nE\n", "cat <<E\nb\nE\n", False),
        ("", "", False),
        ("aws x 'unclosed", "aws x 'unclosed", True),
    ],
)
def test_a_shell_reads_flags_in_any_order_and_words_in_theirs(found: str, expected: str, same: bool) -> None:
    assert same_command(found, expected) is same


def test_equal_to_a_shell_stands_beside_exact() -> None:
    score = score_command("aws x y --b 2 --a 1", "aws x y --a 1 --b 2", AWS)
    assert (score.exact, score.exact_shell) == (False, True)


def test_a_difference_names_what_only_one_side_has() -> None:
    parts = difference("aws s3 mb --force --region x", "aws s3 ls --region x")
    assert [(part.text, part.side) for part in parts] == [
        ("aws", "both"),
        ("s3", "both"),
        ("mb", "found"),
        ("ls", "expected"),
        ("--force", "found"),
        ("--region x", "both"),
    ]


def test_a_block_family_takes_the_first_shell_block() -> None:
    good = score_command("```bash\nls -la\n```", "```bash\nls -la\n```", BASH_BLOCK)
    assert good.fmt and good.exact and good.svc and good.op_token
    talk = score_command("I look around.\n\n```bash\nls -l -a\n```", "```bash\nls -a -l\n```", BASH_BLOCK)
    assert (talk.fmt, talk.xtr, talk.exact, talk.exact_shell, talk.svc) == (False, True, False, True, True)
    assert score_command("ls -la", "```bash\nls -la\n```", BASH_BLOCK).mark == "exact"
    assert not score_command("nothing here", "```bash\nls -la\n```", BASH_BLOCK).xtr


def test_a_custom_family_and_an_invalid_one() -> None:
    kubectl = prefix_family("kubectl", "kubectl")
    assert score_command("kubectl get pods", "kubectl get pods", kubectl).service_and_op
    assert kubectl.fallback
    with pytest.raises(ValueError, match="prefix"):
        CommandFamily("nothing", "prefix", " ")


def test_a_hostile_answer_costs_linear_time() -> None:
    answer = "$(" * 50_000 + "'" * 50_000 + "aws " * 50_000
    assert not score_command(answer, LS, AWS).exact


@pytest.mark.parametrize(
    ("answer", "extracted", "fmt", "xtr"),
    [
        ("ls -la /etc", "ls -la /etc", True, True),
        ("$ ls -la /etc", "ls -la /etc", False, True),
        ("```bash\nls -la /etc\n```", "ls -la /etc", False, True),
        ("I will look around.\nls -la /etc", "ls -la /etc", False, True),
        ("let me look at the files first.\nls -la /etc", "ls -la /etc", False, True),
        ("cat > a <<E\nHello there.\nE", "cat > a <<E\nHello there.\nE", True, True),
        ("PATH=/opt/bin:$PATH make", "PATH=/opt/bin:$PATH make", True, True),
        ("I would list the files.", "I would list the files.", False, False),
        ("", "", False, False),
    ],
)
def test_in_a_shell_session_a_command_is_what_somebody_types(answer: str, extracted: str, fmt: bool, xtr: bool) -> None:
    score = score_command(answer, "ls -la /etc", SHELL_SESSION)
    assert (score.extracted, score.fmt, score.xtr) == (extracted, fmt, xtr)
    assert score.exact == score.svc == score.exact_shell or extracted != "ls -la /etc"


def test_commands_of_a_session_are_compared_by_program_and_words() -> None:
    score = score_command("systemctl status nginx --no-pager", "systemctl --no-pager status nginx", SHELL_SESSION)
    assert (score.exact, score.svc, score.op_token) == (False, True, False)
    assert score_command("git -C a log", "git -C a log", SHELL_SESSION).exact
    assert score_command("exit", "exit", SHELL_SESSION).exact
