"""The plan: what is wanted, checked before any model loads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from kvassay.capabilities import CAPABILITIES
from kvassay.formats import FORMATS, NATIVE
from kvassay.records.base import Fraction, Frozen
from kvassay.records.roadtest import CHECKS

COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_NAME = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def known_format(name: str) -> str:
    """The name itself. Raises ValueError when it is no format of this build."""
    if name != NATIVE and name not in FORMATS:
        raise ValueError(f"{name!r} is no format; known: {NATIVE}, {', '.join(FORMATS)}")
    return name


FormatName = Annotated[str, AfterValidator(known_format)]

# Bounds far above any real plan: what is over them is a slip of the keyboard, and would fill memory or overflow hours later.
Tokens = Annotated[int, Field(gt=0, le=10**9)]
Items = Annotated[int, Field(gt=0, le=100_000)]
Requests = Annotated[int, Field(gt=0, le=10**7)]
Bytes = Annotated[int, Field(gt=0, le=2**50)]
Factor = Annotated[float, Field(gt=0, le=1e6)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class ModelChoice(Frozen):
    """Which model. Exactly one of the four places.

    folder: a folder that transformers saved. gguf: a GGUF file. package: "import_name/file.gguf" inside an installed
    Python package. hub: a repository id, with `revision` pinned to a commit.
    """

    folder: Path | None = None
    gguf: Path | None = None
    package: str | None = None
    hub: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def one_place(self) -> ModelChoice:
        named = [name for name in ("folder", "gguf", "package", "hub") if getattr(self, name)]
        if len(named) != 1:
            raise ValueError("name exactly one of folder, gguf, package, hub")
        if self.hub and not self.revision:
            raise ValueError("a hub model needs revision: a commit id, so that the run stays about one model")
        if self.revision and not self.hub:
            raise ValueError("revision belongs to a hub model only")
        if self.hub and not HUB_NAME.fullmatch(self.hub):
            raise ValueError("hub must be a repository id such as owner/name")
        if self.revision and not COMMIT.fullmatch(self.revision):
            raise ValueError("revision must be the 40-digit commit id; a branch or a tag can move")
        return self


class Menu(Frozen):
    """Formats the search may use, for K and for V."""

    k: tuple[FormatName, ...] = Field(min_length=1)
    v: tuple[FormatName, ...] = Field(min_length=1)

    @field_validator("k", "v")
    @classmethod
    def once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("a format stands twice")
        return names


class Budget(Frozen):
    """How much cache a token may take. Exactly one of the four ways.

    bits: effective bits per cached element. bytes_per_token. gib with tokens and requests: GiB for that workload.
    smallest: the smallest measured map whose joint KL on the choice split is at most gates.kl_mean_nats.
    """

    bits: Annotated[float, Field(gt=0, le=64)] | None = None
    bytes_per_token: Bytes | None = None
    gib: Factor | None = None
    tokens: Tokens | None = None
    requests: Requests | None = None
    smallest: Literal["within gates"] | None = None

    @model_validator(mode="after")
    def one_way(self) -> Budget:
        named = [name for name in ("bits", "bytes_per_token", "gib", "smallest") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError("name exactly one of bits, bytes_per_token, gib (with tokens and requests), smallest")
        if (self.gib is None) != (self.tokens is None) or (self.gib is None) != (self.requests is None):
            raise ValueError("gib needs tokens and requests, and they need gib")
        return self


class SplitSize(Frozen):
    documents: Items
    tokens: Tokens = Field(description="tokens per document")


class CorporaChoice(Frozen):
    """Text. builtin: "topics" (CPython documentation topics), "stdlib" (standard-library sources). files: the user's own
    UTF-8 text files; they are read, never copied."""

    builtin: tuple[Literal["topics", "stdlib"], ...] = ("topics", "stdlib")
    files: tuple[Path, ...] = ()
    overlap_tokens: Tokens = 13
    scoring: SplitSize = SplitSize(documents=16, tokens=96)
    choice: SplitSize = SplitSize(documents=20, tokens=48)
    heldout: SplitSize = SplitSize(documents=20, tokens=64)

    @model_validator(mode="after")
    def some_text(self) -> CorporaChoice:
        if not self.builtin and not self.files:
            raise ValueError("name a builtin text or files of your own")
        return self


class ScoreChoice(Frozen):
    """method: `sketch` takes `probes` backward passes a document for all candidates at once; `exact` runs every candidate."""

    method: Literal["sketch", "exact"] = "sketch"
    probes: int = Field(default=2, ge=1, le=64)
    dtype: Literal["float32", "model"] = "float32"
    floor_multiple: Factor = 3.0


class LadderChoice(Frozen):
    """maps: how many whole mixed maps are measured. uniform: how many of the best predicted uniform pairs."""

    maps: int = Field(default=5, ge=5, le=10_000)
    uniform: Items = 4


class RetrievalTask(Frozen):
    lengths: tuple[Tokens, ...] = Field(default=(400, 800, 3200), min_length=1)
    items_per_length: Items = 3


class ShortTask(Frozen):
    items: Items = 12


class ServedKLTask(Frozen):
    top_k: Items = 200


class Tasks(Frozen):
    """Held-out tasks. A task set to null is left out, and the card says so."""

    retrieval: RetrievalTask | None = RetrievalTask()
    short: ShortTask | None = ShortTask()
    served_kl: ServedKLTask = ServedKLTask()


class Seeds(Frozen):
    corpora: Seed = 0
    tasks: Seed = 1
    bootstrap: Seed = 2
    workload: Seed = 3
    scoring: Seed = 4


class Workload(Frozen):
    """trace: request shapes to replay. limit: first N requests, all when null."""

    trace: Path
    format: Literal["kvassay"] = "kvassay"
    limit: Requests | None = None
    warmup_requests: int = Field(default=1, ge=0, le=100_000)
    kv_memory_bytes: Bytes = 256 * 2**20


class Gates(Frozen):
    """What the decision asks for. Loosening a gate is a decision of the team, and the card shows every gate."""

    quality_margin: Fraction = Field(default=0.02, gt=0.0)
    kl_mean_nats: Factor = 0.05
    kl_p99_nats: Factor = 0.5
    payload_saving: Fraction = 0.25
    ttft_p90_ratio: Factor = 1.10
    tpot_p90_ratio: Factor = 1.10
    checks: tuple[str, ...] = CHECKS

    @field_validator("checks")
    @classmethod
    def known_checks(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in CHECKS:
                raise ValueError(f"{name!r} is no check; known: {', '.join(CHECKS)}")
        return names


class FallbackRung(Frozen):
    """What is done when the cache is exhausted. smaller_map: the next smaller measured map. native: native formats
    with `memory_factor` times the memory. context_cap: refuse longer requests before they start."""

    kind: Literal["smaller_map", "native", "context_cap"]
    context_tokens: Tokens | None = None
    memory_factor: Factor = 1.0

    @model_validator(mode="after")
    def cap_has_tokens(self) -> FallbackRung:
        if (self.kind == "context_cap") != (self.context_tokens is not None):
            raise ValueError("context_tokens belongs to context_cap, and context_cap needs it")
        return self


class Incumbent(Frozen):
    """What the team serves today: one uniform pair."""

    k: FormatName
    v: FormatName


class Plan(Frozen):
    """A whole plan. Relative paths are relative to the plan file."""

    model: ModelChoice
    target: str = "transformers"
    incumbent: Incumbent | None = None
    formats: Menu
    budget: Budget
    corpora: CorporaChoice = CorporaChoice()
    score: ScoreChoice = ScoreChoice()
    ladder: LadderChoice = LadderChoice()
    tasks: Tasks = Tasks()
    seeds: Seeds = Seeds()
    workload: Workload
    gates: Gates = Gates()
    fallback: tuple[FallbackRung, ...] = (FallbackRung(kind="smaller_map"), FallbackRung(kind="native", memory_factor=4.0))

    @field_validator("target")
    @classmethod
    def known_target(cls, name: str) -> str:
        if name not in CAPABILITIES:
            raise ValueError(f"{name!r} is no target of this build; known: {', '.join(CAPABILITIES)}")
        return name
