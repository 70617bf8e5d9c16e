from typing import Annotated

from pydantic import Field, field_validator

from curation.projects.settings.fields import OF_MODELS, Name, Rule, SettingsSection, Share
from judging.commands.rules import check_rule
from judging.commands.screen import FAMILIES, FLAGS, prefix_family
from judging.contamination.normalise import VOLATILE_LABELS


class EvaluationSettings(SettingsSection):
    """How answers are compared with the expected command, and how near-duplicates are found."""

    equivalent_within: Share = Field(
        0.05,
        title="Equivalent within",
        description="Two models are equivalent in a metric if their difference is shown to be smaller. A share: 0.05 "
        "is 5 points of a rate, or 5 % of another metric's earlier mean. 0: never.",
    )
    families: dict[Name, Annotated[str, Field(min_length=1, max_length=60)]] = Field(
        {},
        title="Command families",
        description="One `name = prefix` per line, such as kubectl = kubectl; the built-in ones are in the docs.",
    )
    volatile: list[Name] = Field(
        list(VOLATILE_LABELS),
        title="Volatile lines",
        description="Labels of prompt lines that change with each recording; near-duplicates are found without them.",
    )
    weaknesses: list[Rule] = Field(
        [
            "empty answers: the token limit may have ended them while the model was thinking = len < 1",
            "no commands: it writes prose or code = xtr < 0.5 and len >= 1",
            "format: it knows the answer and wraps it; format tuning fixes that = xtr - fmt >= 0.1",
            "domain: it takes another service for most tasks = xtr >= 0.5 and svc < 0.5",
            "operations: the right service and a wrong operation; it needs knowledge = svc - service_and_op >= 0.05",
            "arguments: the right operation and wrong flags or values = service_and_op - exact >= 0.15",
            "slow: twice the time of the best = lat > 2 * best_lat",
        ],
        title="Weaknesses",
        description="One `weakness = rule` per line, such as `format = xtr - fmt >= 0.1`. All that apply are shown.",
    )
    train: list[Rule] = Field(
        [
            "run again: most answers were cut or failed = cut + errors >= 0.5",
            "no: most answers have no command = xtr < 0.5",
            "no: too far behind the best = best_exact - exact > 0.25",
            "no: it knows too little to start from = exact < 0.05",
            "yes: the best of this screen = exact >= best_exact",
            "fallback: if speed counts more = lat <= 0.9 * best_lat",
            "fallback: if the best disappoints = always",
        ],
        title="Recommendation",
        description="One `answer = rule` per line; the first rule that applies to a model decides.",
    )
    embedding: str = Field(
        "",
        max_length=60,
        title="Embeddings",
        description="Name of a model endpoint with /embeddings, to find paraphrases and translations; empty: none.",
        json_schema_extra=OF_MODELS,
    )
    paraphrase_from: Share = Field(
        0.9, title="Paraphrase from", description="Cosine of two tasks' embeddings, 0 to 1; it depends on the model."
    )
    targets: dict[Name, Share] = Field(
        {"fmt": 1.0, "op_token": 0.9, "exact": 0.75},
        title="Targets",
        description="One `rate = number` per line, 0 to 1: the rates to reach after training.",
    )
    group_size: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        8, title="Answers per prompt", description="In training (G), to project its time."
    )
    training_prompts: Annotated[int, Field(ge=1, le=1_000_000_000)] = Field(100, title="Prompts per epoch")
    training_turns: Annotated[int, Field(ge=1, le=100_000)] = Field(5, title="Turns per episode")

    @field_validator("weaknesses", "train")
    @classmethod
    def readable(cls, rules: list[str]) -> list[str]:
        for rule in rules:
            check_rule(rule)
        return rules

    @field_validator("targets")
    @classmethod
    def of_rates(cls, targets: dict[str, float]) -> dict[str, float]:
        if unknown := sorted(set(targets) - set(FLAGS)):
            raise ValueError(f"unknown rate {', '.join(unknown)}; rates are {', '.join(FLAGS)}")
        return targets

    @field_validator("families")
    @classmethod
    def new_families(cls, families: dict[str, str]) -> dict[str, str]:
        for name, prefix in families.items():
            if name in FAMILIES:
                raise ValueError(f"{name} is built in")
            prefix_family(name, prefix)
        return families
