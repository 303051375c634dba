"""What every artifact has in common."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegativeInt = Annotated[int, Field(ge=0)]
NonNegativeFloat = Annotated[float, Field(ge=0.0)]


class Frozen(BaseModel):
    """An immutable typed value; unknown keys, NaN and Infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True, protected_namespaces=())


class Header(Frozen):
    """First keys of every artifact: what it is, who wrote it, and from what."""

    schema_id: str = Field(alias="schema")
    tool_version: str
    created_at: str
    inputs: dict[str, Sha256]
    settings_sha256: Sha256

    @classmethod
    def names(cls) -> frozenset[str]:
        return frozenset(field.alias or name for name, field in cls.model_fields.items())


class SideFile(Frozen):
    """A file that an artifact vouches for; `path` is relative to the run folder."""

    path: str
    bytes: NonNegativeInt
    sha256: Sha256


class Record(Frozen):
    """Body of one artifact. `artifact` is its file name in the run folder, `schema_id` its schema and number."""

    artifact: ClassVar[str]
    schema_id: ClassVar[str]

    side_files: tuple[SideFile, ...] = ()


class Interval(Frozen):
    """A two-sided interval; `level` is its confidence, for example 0.95."""

    low: float
    high: float
    level: Fraction
