import pytest

from sandbox.agent.action import LoopFacts, loop_facts


@pytest.mark.parametrize(
    ("commands", "facts", "looping"),
    [
        ([], LoopFacts(0, 0.0, 0), False),
        (["ls"], LoopFacts(1, 0.0, 1), False),
        (["ls", "ls"], LoopFacts(2, 0.5, 2), False),
        (["ls", "ls", "ls"], LoopFacts(3, 2 / 3, 3), True),
        (["a", "b", "a", "b"], LoopFacts(4, 0.5, 1), True),
        (["a", "b", "c", "a"], LoopFacts(4, 0.25, 1), False),
    ],
)
def test_the_loop_check(commands: list[str], facts: LoopFacts, looping: bool) -> None:
    assert loop_facts(commands) == facts
    assert facts.looping is looping
