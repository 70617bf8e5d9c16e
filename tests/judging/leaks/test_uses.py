"""Names that a patch only uses are no leak where a library has them; what the repository has stays one."""

from dataclasses import replace

import pytest

from judging.leaks.doubt import doubt_about
from judging.leaks.lint import lint_leaks
from judging.leaks.record import PullRequestRecord
from tests.judging.leaks.test_lint import make_record
from tests.judging.turns import Turn, read_turns

HISTORY = ["Label batches fail with 401. The token expires.", "$ ls src tests\nsrc: client.php\ntests: base.php"]
RECORD = PullRequestRecord(
    instance_id="moorland__parcelpost-2716",
    title="Renew tokens within a batch",
    issue="Label batches fail with 401. The token expires.",
    description="Only one worker renews: `renewStale` takes a lock.",
    patch="""diff --git a/src/client.php b/src/client.php
--- a/src/client.php
+++ b/src/client.php
@@ -118,4 +118,9 @@ class Client
+        if ($this->vault->renewStale(self::STALE_MARGIN)) {
+            $lock = Cache::lockForToken('carrier', 17);
+            $answer = $request->withBearerToken($lock);
+            $minor = quantize_minor($answer);
+            TokenVault::fetchFresh($minor);
+            this.guardFocus(minor);
+        }
diff --git a/src/vault.php b/src/vault.php
new file mode 100644
--- /dev/null
+++ b/src/vault.php
@@ -0,0 +1,4 @@
+class TokenVault
+{
+    public function renewStale(int $margin): bool { return true; }
+}
diff --git a/tests/renewal_test.exs b/tests/renewal_test.exs
--- /dev/null
+++ b/tests/renewal_test.exs
@@ -0,0 +1,3 @@
+  test "renewal" do
+    assert_receive_all {:renewed, 3}, 200
+    pid = start_supervised_link!(Vault)
+  end
""",
    files=("src/client.php", "src/vault.php", "tests/renewal_test.exs"),
)


def is_flagged(answer: str) -> bool:
    return lint_leaks(answer, HISTORY, RECORD).flagged(0.1)


@pytest.mark.parametrize(
    "answer",
    [
        "THOUGHT: `Cache::lockForToken` lets one worker in.\n\n```bash\nls\n```",
        "THOUGHT: A lock.\n\n```bash\ngrep -rn 'Cache::lockForToken' src\n```",
        "THOUGHT: Requests have withBearerToken(), which may help.\n\n```bash\nls\n```",
        "THOUGHT: In tests, assert_receive_all waits, and start_supervised_link! starts it.\n\n```bash\nls\n```",
    ],
)
def test_what_a_library_offers_is_no_leak(answer: str) -> None:
    assert not is_flagged(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "THOUGHT: It needs quantize_minor.\n\n```bash\nls\n```",
        "THOUGHT: It needs guardFocus.\n\n```bash\nls\n```",
        "THOUGHT: It needs STALE_MARGIN.\n\n```bash\nls\n```",
        "THOUGHT: It needs TokenVault::fetchFresh.\n\n```bash\nls\n```",
        "THOUGHT: It needs renewStale.\n\n```bash\nls\n```",
        # Who searches the repository for a method takes it for the repository's.
        "THOUGHT: Who has it?\n\n```bash\ngrep -rn withBearerToken src\n```",
    ],
)
def test_a_name_of_the_repository_is_a_leak(answer: str) -> None:
    assert is_flagged(answer)


def last_turns() -> dict[str, Turn]:
    return {turn.record.instance_id: turn for turn in read_turns()}


def doubt(record: PullRequestRecord, *shown: str, repo: str = "", trajectory_repo: str = "") -> str:
    return doubt_about(record, repo=repo, trajectory_repo=trajectory_repo, shown=shown)


def test_real_records_belong_to_their_trajectories_and_to_no_other() -> None:
    turns = last_turns()
    assert len(turns) == 6
    for name, turn in turns.items():
        for other, theirs in turns.items():
            found = doubt(theirs.record, *turn.history, turn.answer)
            assert bool(found) == (name != other), (name, other, found)


def test_a_record_of_another_repository_is_doubtful_whatever_it_changes() -> None:
    shown = "cat gears/client.py"
    assert doubt(make_record(), shown, repo="acme/gears", trajectory_repo="Acme/Gears") == ""
    assert doubt(make_record(), shown, repo="gears", trajectory_repo="acme/gears") == ""
    assert "other/wheels" in doubt(make_record(), shown, repo="other/wheels", trajectory_repo="acme/gears")
    assert "fork/gears" in doubt(make_record(), shown, repo="fork/gears", trajectory_repo="acme/gears")


@pytest.mark.parametrize(
    ("shown", "is_doubtful"),
    [
        ("open gears/client.py", False),
        ("ls\ngears\nsetup.py", False),
        ("class GearClient is slow", False),
        ("send_packet fails", False),
        ("the client is slow; see src/main.py and tests", True),
        ("nothing of it", True),
    ],
)
def test_one_file_folder_or_identifier_of_the_patch_is_enough(shown: str, is_doubtful: bool) -> None:
    assert bool(doubt(make_record(), shown)) is is_doubtful


def test_a_record_without_a_patch_has_nothing_to_compare() -> None:
    assert doubt(replace(make_record(patch=""), files=()), "nothing of it") == ""
