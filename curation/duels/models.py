"""Prompts, pull-request records, exclusions, answers, duels and verdicts."""

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from django.conf import settings
from django.db import models
from django.utils.functional import cached_property

from curation.duels.reigns.models import Reign
from curation.duels.score.models import Score, ScorePanel
from curation.projects.models import Blocker, Project
from curation.runs.models import Call, DependsOnRun, Run
from curation.samples.models import UNSCORED, Sample, flag_names
from curation.trajectories.models import Trajectory
from judging.messages import Message, message_text

__all__ = ["Reign", "Score", "ScorePanel"]  # Django finds the models of an app here
# The state of a reading (`Answer.reading`) that a second reader gave.
READ = "read"


class Session(DependsOnRun):
    """A session of messages, stored once for all of its prompts, each of which is a position in it.

    `messages` is None if they are those of the trajectory's steps, marks left aside. `digest` is of the instance, the
    tools and the messages before the last turn, by which the session is known again.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="+", help_text="The import that created it.")
    digest = models.CharField(max_length=32, blank=True, default="")
    messages = models.JSONField(null=True)
    tools = models.JSONField(default=list)
    trajectory = models.ForeignKey(Trajectory, models.RESTRICT, null=True, related_name="+")

    class Meta:
        indexes: ClassVar = [models.Index(fields=["project", "digest"], name="session_by_digest")]

    def __str__(self) -> str:
        return f"session {self.pk}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        made_of = models.Q(trajectory__run=run) | models.Q(trajectory__scenario__run=run)
        prompts = Prompt.objects.filter(text__session__in=cls.objects.filter(made_of)).exclude(run=run)
        text = "Turns of other runs that are steps of its trajectories: {}."
        yield from run.blocked_by(prompts.count(), text, "prompt-list")

    @classmethod
    def deleted_with(cls, run: Run) -> models.QuerySet[Any]:
        """Those without prompts: a session that prompts of a later import kept has no run."""
        return cls.objects.filter(models.Q(run=run) | models.Q(run=None), project=run.project_id, prompt_texts=None)

    @cached_property
    def all_messages(self) -> list[Message]:
        if self.trajectory is not None:
            return self.trajectory.text.unmarked.said()[0]
        return cast(list[Message], self.messages)


# Of a subquery's rows about the instance of the outer row.
SAME_INSTANCE = {name: models.OuterRef(name) for name in ("project_id", "instance_id")}


class PromptQuerySet(models.QuerySet["Prompt"]):
    """Exclusions and records belong to an instance; a prompt without an `instance_id` has neither."""

    def of(self, project: Project) -> "PromptQuerySet":
        return self.filter(project=project)

    def answerable(self) -> "PromptQuerySet":
        """Return prompts whose instance is not excluded."""
        return self.filter(~models.Exists(Exclusion.objects.filter(**SAME_INSTANCE)))

    def excluded(self) -> "PromptQuerySet":
        return self.filter(models.Exists(Exclusion.objects.filter(**SAME_INSTANCE)))

    def with_record(self) -> "PromptQuerySet":
        """Return prompts with a pull-request record that is not doubtful. Only these can be challenged."""
        return self.filter(models.Exists(PullRequest.objects.filter(**SAME_INSTANCE).usable()))

    def without_record(self) -> "PromptQuerySet":
        return self.filter(~models.Exists(PullRequest.objects.filter(**SAME_INSTANCE)))

    def with_doubtful_record(self) -> "PromptQuerySet":
        """Return prompts whose record may belong to another task: no challenger uses it."""
        return self.filter(models.Exists(PullRequest.objects.filter(**SAME_INSTANCE).doubtful()))

    def for_list(self) -> "PromptQuerySet":
        """Return the rows of the list with `has_record`, `doubt` and `exclusion` (the reasons, or None)."""
        return self.annotate(
            has_record=models.Exists(PullRequest.objects.filter(**SAME_INSTANCE)),
            doubt=models.Subquery(PullRequest.objects.filter(**SAME_INSTANCE).doubtful().values("doubt")[:1]),
            exclusion=models.Subquery(Exclusion.objects.filter(**SAME_INSTANCE).values("reason")[:1]),
        )


class Prompt(DependsOnRun):
    """An agent turn to answer. Its position in a session and its reference are in `PromptText`."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="prompts")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, help_text="The import that created it.")
    source = models.CharField(max_length=200)
    imported_again = models.BooleanField(default=False, help_text="A later import also had it: it outlives the first.")
    row_offset = models.PositiveBigIntegerField()
    turn_index = models.PositiveIntegerField(help_text="Index of the reference in the row's messages.")
    instance_id = models.CharField(max_length=200, blank=True, default="")
    repo = models.CharField(max_length=200, blank=True, default="")
    tokens = models.PositiveIntegerField(help_text="Estimated: characters of the history ÷ 4.")
    content_hash = models.CharField(
        max_length=32, blank=True, default="", help_text="Digest of the instance, the history and the turn."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PromptQuerySet.as_manager()
    deleted_if = models.Q(imported_again=False, duels=None)

    class Meta:
        constraints: ClassVar = [
            # Importing the same source again adds nothing twice.
            models.UniqueConstraint(fields=["project", "source", "row_offset", "turn_index"], name="prompt_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["project", "id"], name="prompt_list"),
            models.Index(fields=["project", "instance_id", "id"], name="prompt_by_instance"),
            models.Index(fields=["project", "content_hash"], name="prompt_by_content"),
        ]

    def __str__(self) -> str:
        return f"{self.source}:{self.row_offset}:{self.turn_index}"

    @property
    def row_number(self) -> int:
        """The row, counted from 1."""
        return self.row_offset + 1


class PromptText(models.Model):
    """The position of a prompt, `at`, in a session, and `reference`, the source's own turn there.

    Fetch many prompts with `prefetch_related("text__session")`, which reads a session once for all of its prompts;
    `select_related` reads it again for each.
    """

    prompt = models.OneToOneField(Prompt, models.CASCADE, primary_key=True, related_name="text")
    session = models.ForeignKey(Session, models.RESTRICT, related_name="prompt_texts")
    at = models.PositiveIntegerField(help_text="Number of the session's messages before the turn.")
    reference = models.JSONField()

    def __str__(self) -> str:
        return f"text of prompt {self.prompt_id}"

    @property
    def history(self) -> list[dict[str, Any]]:
        """The messages before the turn, with tool calls and reasoning."""
        return cast(list[dict[str, Any]], self.session.all_messages[: self.at])

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The functions that the turn may call, in OpenAI's form."""
        tools: list[dict[str, Any]] = self.session.tools
        return tools


class PullRequestQuerySet(models.QuerySet["PullRequest"]):
    def of(self, project: Project) -> "PullRequestQuerySet":
        return self.filter(project=project)

    def doubtful(self) -> "PullRequestQuerySet":
        """Return records that may belong to another task and that no curator has cleared."""
        return self.exclude(doubt="").filter(doubt_cleared=False)

    def usable(self) -> "PullRequestQuerySet":
        return self.filter(models.Q(doubt="") | models.Q(doubt_cleared=True))


class PullRequest(DependsOnRun):
    """The hidden record of how a task was resolved; only the challenger sees it."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="pull_requests")
    instance_id = models.CharField(max_length=200)
    repo = models.CharField(max_length=200, blank=True, default="")
    title = models.CharField(max_length=500, blank=True, default="")
    commit = models.CharField(max_length=80, blank=True, default="")
    files = models.JSONField(default=list)
    patch_tokens = models.PositiveIntegerField(default=0)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, help_text="The import that created it.")
    imported_again = models.BooleanField(default=False, help_text="A later import also had it: it outlives the first.")
    doubt = models.CharField(
        max_length=400, blank=True, default="", help_text="Why it may belong to another task; empty: no doubt."
    )
    doubt_cleared = models.BooleanField(default=False, help_text="A curator saw the doubt and uses the record.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PullRequestQuerySet.as_manager()
    deleted_if = models.Q(imported_again=False)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "instance_id"], name="pull_request_once")]

    def __str__(self) -> str:
        return self.instance_id

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        instances = cls.deleted_with(run).values("instance_id")
        answers = Answer.objects.filter(side=Side.CHALLENGER, prompt__project=run.project_id)
        answers = answers.filter(prompt__instance_id__in=instances)
        text = "Challengers' answers that are written with its pull-request records: {}."
        return run.blocked_by(answers.count(), text, "duel-list")

    @property
    def is_doubtful(self) -> bool:
        return bool(self.doubt) and not self.doubt_cleared


class PullRequestText(models.Model):
    pull_request = models.OneToOneField(PullRequest, models.CASCADE, primary_key=True, related_name="text")
    issue = models.TextField(blank=True, default="")
    description = models.TextField(blank=True, default="")
    patch = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"text of {self.pull_request_id}"


class Exclusion(models.Model):
    """An instance whose prompts runs skip, and why."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="exclusions")
    instance_id = models.CharField(max_length=200)
    reason = models.CharField(max_length=200)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "instance_id"], name="exclusion_once")]

    def __str__(self) -> str:
        return f"{self.instance_id}: {self.reason}"


class Side(models.TextChoices):
    KING = "king", "King"
    CHALLENGER = "challenger", "Challenger"


class Answer(DependsOnRun):
    """A model's answer to a prompt. A refused one is stored with its reason and never judged.

    `fingerprint` is the SHA-256 over stage, model, instructions and parameters. A prompt with an accepted answer of the
    same fingerprint and sample index is skipped.
    """

    prompt = models.ForeignKey(Prompt, models.CASCADE, related_name="answers")
    run = models.ForeignKey(Run, models.SET_NULL, null=True)
    call = models.ForeignKey(Call, models.SET_NULL, null=True)
    side = models.CharField(max_length=10, choices=Side)
    model = models.CharField(max_length=60, help_text="Name of the endpoint.")
    family = models.CharField(max_length=60, blank=True, default="")
    fingerprint = models.CharField(max_length=64)
    instructions_hash = models.CharField(max_length=64)
    sample_index = models.PositiveSmallIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=1)
    refusal = models.CharField(max_length=20, blank=True, default="", help_text="Reason code; empty when accepted.")
    has_thought = models.BooleanField(default=False)
    blocks = models.PositiveSmallIntegerField(default=0)
    commands = models.PositiveSmallIntegerField(default=0)
    action_style = models.CharField(max_length=20, blank=True, default="")
    tokens = models.PositiveIntegerField(default=0)
    leak_score = models.FloatField(null=True, help_text="Leaked ÷ checkable tokens; None where nothing was compared.")
    leak_flag = models.BooleanField(default=False)
    leak_spans = models.JSONField(default=list)
    reader_flag = models.BooleanField(default=False, help_text="The second reader found a leak.")
    reading = models.JSONField(default=dict, help_text="What the second reader found; empty if it did not read.")
    created_at = models.DateTimeField(auto_now_add=True)

    deleted_if = models.Q(duels_as_king=None, duels_as_challenger=None)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["prompt", "fingerprint", "sample_index"],
                condition=models.Q(refusal=""),
                name="answer_accepted_once",
            ),
        ]
        # The answers of a prompt on one side; the prompts with an answer of a fingerprint.
        indexes: ClassVar = [
            models.Index(fields=["prompt", "side", "id"], name="answer_by_prompt"),
            models.Index(fields=["fingerprint", "prompt"], name="answer_by_fingerprint"),
        ]

    def __str__(self) -> str:
        return f"{self.side} by {self.model}"


class AnswerText(models.Model):
    answer = models.OneToOneField(Answer, models.CASCADE, primary_key=True, related_name="text")
    text = models.TextField(help_text="The answer, with its tool calls as lines below it.")
    thinking = models.TextField(
        blank=True, default="", help_text="Kept apart and never judged; exported if the recipe keeps reasoning."
    )
    tool_calls = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.text[:60]


class Opponent(models.TextChoices):
    KING = "king", "King"
    REFERENCE = "reference", "Reference"
    NONE = "none", "None"


class DuelQuerySet(models.QuerySet["Duel"]):
    def of(self, project: Project) -> "DuelQuerySet":
        return self.filter(project=project)

    def with_answers(self) -> "DuelQuerySet":
        """Return duels with the fields of the REST calls, in a few queries, without the long history."""
        rows = self.select_related("prompt__text", "king__text", "challenger__text")
        rows = rows.defer("king__text__thinking", "challenger__text__thinking")
        scores = Score.objects.select_related("panel").order_by("-scored_at", "-pk")
        verdicts = Verdict.objects.order_by("judge", "-order", "pk")
        return rows.prefetch_related(models.Prefetch("verdicts", verdicts), models.Prefetch("scores", scores))

    def scored_by(self, run: Run) -> "DuelQuerySet":
        """Return the duels that the run scored, with that score as `ran` in lookups and in `of_run`."""
        rows = self.annotate(ran=models.FilteredRelation("scores", condition=models.Q(scores__run=run)))
        rows = rows.filter(ran__isnull=False).annotate(ran_key=models.F("ran__score_key"))
        own = Score.objects.filter(run=run).select_related("panel")
        return rows.prefetch_related(models.Prefetch("scores", own, to_attr="of_run"))

    def with_texts(self) -> "DuelQuerySet":
        """Return duels with the fields of their page, in a few queries."""
        return self.with_answers().defer(None).with_histories()

    def with_histories(self) -> "DuelQuerySet":
        """Return duels with all texts, their prompts' histories included."""
        rows = self.select_related("prompt__text", "king__text", "challenger__text")
        return rows.prefetch_related("prompt__text__session")


_AnyDuels = models.Manager.from_queryset(DuelQuerySet)


class RunDuels(_AnyDuels["Duel"]):
    """No list, score, sample, count or export has control duels."""

    def get_queryset(self) -> DuelQuerySet:
        return DuelQuerySet(self.model, using=self._db).filter(control="")


class Duel(DependsOnRun):
    """A challenger's answer against the king's, or against the reference (`king` is None). Each pair has one duel. An
    imported answer without another beside it has no opponent.

    `counting` is the newest score by the panel that counts, and `score` to `flags` are copied from it: they are empty
    until that panel has scored the duel. `run` is the run of that score, before it the run that first scored the duel.
    `scoring` has the score and label that an imported file gives it.
    A control duel has a known outcome, `expected`: 1 challenger, -1 opponent, 0 draw; of an answer with and without a
    bribe, the side without. It has no score and no sample.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="duels")
    prompt = models.ForeignKey(Prompt, models.CASCADE, related_name="duels")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="duels")
    sample = models.OneToOneField(Sample, models.SET_NULL, null=True, related_name="duel")
    opponent = models.CharField(max_length=9, choices=Opponent, default=Opponent.KING)
    king = models.ForeignKey(Answer, models.RESTRICT, null=True, related_name="duels_as_king")
    challenger = models.ForeignKey(Answer, models.RESTRICT, related_name="duels_as_challenger")
    counting = models.OneToOneField("Score", models.SET_NULL, null=True, related_name="counts_for")
    score = models.FloatField(null=True)
    score_key = models.FloatField(default=UNSCORED, help_text="The score, -1 for none: a keyset needs a value.")
    metrics = models.JSONField(default=dict)
    spread = models.FloatField(default=0.0)
    bucket = models.CharField(max_length=8, blank=True, default="")
    flags = models.PositiveSmallIntegerField(default=0)
    scoring = models.JSONField(default=dict)
    control = models.CharField(max_length=6, blank=True, default="", help_text="Kind of a control duel.")
    expected = models.SmallIntegerField(null=True)
    planted = models.TextField(blank=True, default="", help_text="A control's answer with the fault.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RunDuels()
    everything = DuelQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["challenger", "king"], condition=models.Q(king__isnull=False, control=""), name="duel_pair_once"
            ),
            models.UniqueConstraint(
                fields=["challenger"], condition=models.Q(king__isnull=True, control=""), name="duel_reference_once"
            ),
            models.UniqueConstraint(
                fields=["challenger", "control"], condition=~models.Q(control=""), name="duel_control_once"
            ),
        ]
        indexes: ClassVar = [
            # The list, its sort orders and its tabs.
            models.Index(fields=["project", "id"], name="duel_list"),
            models.Index(fields=["project", "score_key", "id"], name="duel_list_score"),
            models.Index(fields=["project", "bucket", "id"], name="duel_list_bucket"),
            models.Index(fields=["project", "bucket", "score_key", "id"], name="duel_bucket_score"),
            # Few duels are flagged; their list must not scan the others.
            models.Index(fields=["project", "flags", "id"], name="duel_list_flags"),
        ]

    def __str__(self) -> str:
        return f"duel {self.pk}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        """Other runs keep the answers and scores that they used. An import's turns are deleted with the duels made of
        them, unless a sample of these is decided."""
        duels = cls.everything.filter(project=run.project_id)
        used = duels.filter(models.Q(king__run=run) | models.Q(challenger__run=run)).exclude(run=run)
        yield from run.blocked_by(used.count(), "Duels of other runs that use its answers: {}.", "duel-list")
        others = Score.objects.filter(duel=models.OuterRef("pk")).exclude(run=run)
        foreign = Verdict.objects.filter(duel=models.OuterRef("pk")).exclude(run=run)
        scored = models.Q(models.Exists(others)) | models.Q(models.Exists(foreign))
        older = duels.filter(scored | ~models.Q(sample__run=run) & models.Q(sample__isnull=False), run=run)
        text = "Duels of other runs that have their score from it: {}."
        yield from run.blocked_by(older.count(), text, "duel-list", f"?run={run.pk}")

    @classmethod
    def deleted_with(cls, run: Run) -> models.QuerySet[Any]:
        """Those whose sample is gone."""
        own = models.Q(run=run) | models.Q(prompt__run=run) if run.kind == "import" else models.Q(run=run)
        return cls.everything.filter(own, project=run.project_id, sample=None)

    @property
    def reference_text(self) -> str:
        """The source's own turn. Needs `prompt__text`."""
        return message_text(self.prompt.text.reference)

    @property
    def opponent_text(self) -> str:
        """The king's answer, or in mode 1 the reference; empty without an opponent."""
        if self.king is not None:
            return self.king.text.text
        return "" if self.opponent == Opponent.NONE else self.reference_text

    @property
    def flag_names(self) -> list[str]:
        return flag_names(self.flags)


class TrialTask(models.Model):
    """Whether a task's duels test the judges' instructions, or are there to write them by. It stays so for ever: no
    text is measured on tasks that it was written by."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="trial_tasks", db_index=False)
    task = models.CharField(max_length=220)
    held_out = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "task"], name="trial_task_once")]

    def __str__(self) -> str:
        return self.task


class Order(models.TextChoices):
    KING_FIRST = "king_first", "King first"
    CHALLENGER_FIRST = "challenger_first", "Challenger first"


class Verdict(DependsOnRun):
    """One judge's reading of one duel in one order. `dimensions`: 1 the first answer, 2 the second, 0 a draw.

    An unparsed reply is stored with the reason. It counts as missing, never as a loss. No run changes another run's
    verdicts: a run that has a verdict of the same fingerprint uses it, and else adds its own. `attempts` are the run's.
    """

    duel = models.ForeignKey(Duel, models.CASCADE, related_name="verdicts")
    run = models.ForeignKey(Run, models.SET_NULL, null=True)
    call = models.ForeignKey(Call, models.SET_NULL, null=True)
    judge = models.CharField(max_length=60, help_text="Name of the endpoint.")
    family = models.CharField(max_length=60, blank=True, default="")
    order = models.CharField(max_length=16, choices=Order)
    fingerprint = models.CharField(max_length=64)
    instructions_hash = models.CharField(max_length=64)
    parsed = models.BooleanField()
    dimensions = models.JSONField(default=dict)
    reason = models.TextField(blank=True, default="", help_text="The judge's sentence, or why it did not parse.")
    raw = models.TextField(blank=True, default="", help_text="The reply as it came.")
    attempts = models.PositiveSmallIntegerField(default=1)
    tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=8, null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["duel", "judge", "order", "fingerprint", "run"], name="verdict_once"),
        ]

    def __str__(self) -> str:
        return f"{self.judge} {self.order}"

    @classmethod
    def blockers_of(cls, run: Run) -> Iterable[Blocker]:
        judged = len(cls._judged_for_others(run))
        yield from run.blocked_by(judged, "Scores of other runs that use its verdicts: {}.", "duel-list")
        recorded = cls.objects.filter(call__run=run).exclude(run=run).count()
        recorded += Answer.objects.filter(call__run=run).exclude(run=run).count()
        text = "Answers and verdicts of other runs that come from its calls: {}."
        yield from run.blocked_by(recorded, text, "duel-list")

    @classmethod
    def deleted_with(cls, run: Run) -> models.QuerySet[Any]:
        """A sample that somebody has decided since keeps its verdicts."""
        verdicts = cls.objects.filter(run=run).exclude(duel__counting__run=run, duel__sample__isnull=False)
        return verdicts.none() if cls._judged_for_others(run) else verdicts

    @classmethod
    def _judged_for_others(cls, run: Run) -> set[int]:
        """Return the ids of other runs' scores that the run's verdicts helped to make."""
        own = set(cls.objects.filter(run=run).values_list("pk", flat=True))
        rows = Score.objects.filter(duel__verdicts__run=run).exclude(run=run).distinct()
        return {pk for pk, verdicts in rows.values_list("pk", "verdicts").iterator() if own.intersection(verdicts)}
