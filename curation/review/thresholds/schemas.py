from ninja import Schema
from pydantic import Field

from curation.projects.pages.schemas import MoveOut
from curation.review.thresholds.pages import Change, Outlook, ScoresView, precision_words
from curation.web.schemas import Ends, Out


class BinOut(Out):
    """The samples with scores from `low` to below `high`; the last bin has those with 100 too."""

    low: int = Field(examples=[80])
    high: int = Field(examples=[85])
    samples: int = Field(examples=[412], description="`GET …/samples?score_min=&score_below=&panel=` lists them.")
    pending: int = Field(examples=[371])
    approved: int = Field(examples=[30])
    settled: int = Field(examples=[11], description="Rejected, or to be refined.")
    held: int = Field(examples=[9], description="With a flag that holds a sample out of `final`.")
    rated: int = Field(examples=[38], description="Of the others: decided, by a decision that counts.")
    rated_approved: int = Field(examples=[29])
    rate: float | None = Field(examples=[0.763], description="`rated_approved` / `rated`; null without a decision.")
    interval: Ends | None = Field(examples=[[0.608, 0.870]], description="Its 95 % interval (Wilson).")


class PrecisionOut(Schema):
    """The share of the samples in `final` that people approve, if they decide all of them.

    Undecided samples are approved at the rate of the decided ones in the same bin. Without a decision in one of the
    bins `share` is null, and the interval allows for none and for all of its samples.
    """

    share: float | None = Field(examples=[0.84])
    interval: list[float] = Field(examples=[[0.79, 0.88]], description="95 %.")
    samples: int = Field(examples=[1240])
    decided: int = Field(examples=[212], description="Decisions that it rests on.")
    approved: int = Field(examples=[181])
    unknown: int = Field(examples=[0], description="Samples in bins without a decision.")
    kept_other: int = Field(examples=[4], description="Approvals that kept the opponent's answer or a revision.")
    flips_decided: float | None = Field(examples=[0.31], description="Share with a position flip among the decided.")
    flips_undecided: float | None = Field(examples=[0.12], description="The same among the others.")
    words: str = Field(examples=["People would approve about 84 % of the 1,240 samples in final (95 %: 79 to 88 %)."])


class OutlookOut(Schema):
    """The bucket `final` with these edges, in points of the score."""

    final: float = Field(examples=[82.0])
    refined: float = Field(examples=[66.0])
    precision: PrecisionOut
    held: int = Field(examples=[31], description="Samples from `final` on that a flag holds out of it.")
    held_by: dict[str, int] = Field(examples=[{"infra": 1, "leak": 24, "leak_reader": 8}])

    @staticmethod
    def of(one: Outlook) -> "OutlookOut":
        found = one.precision
        return OutlookOut(
            final=one.edges.final,
            refined=one.edges.refined,
            precision=PrecisionOut(
                share=found.share,
                interval=[found.interval.low, found.interval.high],
                samples=found.samples,
                decided=found.decided,
                approved=found.approved,
                unknown=found.unknown,
                kept_other=one.kept_other,
                flips_decided=one.flips[0],
                flips_undecided=one.flips[1],
                words=precision_words(one),
            ),
            held=one.held,
            held_by=one.held_by,
        )


class ThresholdsOut(Schema):
    panel: str | None = Field(examples=["3f9a1c0b77de"], description="The panel whose scores count; null before any.")
    bins: list[BinOut]
    scored: int = Field(examples=[5000])
    unparsed: int = Field(examples=[12])
    imported: int = Field(examples=[0], description="Samples with a score of no panel, which thresholds do not move.")
    settled: int = Field(examples=[610], description="Samples that are decided.")
    counted: int = Field(examples=[560], description="Those whose decision counts.")
    saved: OutlookOut
    tried: OutlookOut
    moves: list[MoveOut]
    version: int = Field(description="The project's; send it as `If-Match` with the change.")

    @staticmethod
    def of(view: ScoresView, change: Change, version: int) -> "ThresholdsOut":
        return ThresholdsOut(
            panel=None if view.panel is None else view.panel.digest,
            bins=[BinOut.model_validate(one) for one in view.bins],
            scored=view.scored,
            unparsed=view.unparsed,
            imported=view.imported,
            settled=view.settled,
            counted=view.counted,
            saved=OutlookOut.of(change.saved),
            tried=OutlookOut.of(change.tried),
            moves=[MoveOut.model_validate(move) for move in change.preview.moves],
            version=version,
        )
