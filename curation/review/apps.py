from pathlib import Path

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    name = "curation.review"

    def ready(self) -> None:
        from curation.imports import row_kinds
        from curation.projects.instructions.texts import register
        from curation.review.guarantees import carry_out  # noqa: F401 - connects its signal
        from curation.review.imports.kind import SampleImportKind
        from curation.review.imports.trajectories import TrajectoryKind
        from curation.review.queue.lease import LEASED
        from curation.review.refine.draft import SuggestRun
        from curation.review.refine.kind import RefineRun, RejudgeRun
        from curation.runs import kinds

        register("refine", Path(__file__).parent / "instructions/refine.txt", "Refine: improve an answer")
        register("suggest", Path(__file__).parent / "instructions/suggest.txt", "Suggest: a draft for a reviewer")
        LEASED.connect(self)
        kinds.register(RefineRun(), RejudgeRun(), SuggestRun())
        row_kinds.register(SampleImportKind())
        row_kinds.register(TrajectoryKind())
