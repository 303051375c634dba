"""What the solver may choose from: scores, bytes and the target's rules become groups of which one choice each is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvassay.capabilities import Capability
from kvassay.errors import BadInput
from kvassay.formats import NATIVE, law
from kvassay.geometry.price import layer_bytes_per_token
from kvassay.plan.legal import layer_pairs, legal_formats
from kvassay.plan.schema import Menu
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer
from kvassay.records.scores import Score, Scores


@dataclass(frozen=True)
class Choice:
    """A format for K, for V, or for both of one layer, whichever is not None.

    kl_nats: isolated KL as measured, never below 0. weight_nats: what the solver minimises: 0 where the KL is at the noise
    floor, so that formats at the floor tie and the cheapest wins.
    """

    k: str | None
    v: str | None
    bytes_per_token: int
    kl_nats: float
    weight_nats: float

    @property
    def formats(self) -> frozenset[str]:
        return frozenset(name for name in (self.k, self.v) if name is not None)


@dataclass(frozen=True)
class Group:
    """Choices of which exactly one is taken. `owner` counts owner layers from 0."""

    owner: int
    choices: tuple[Choice, ...]


class PriceList:
    """Isolated KL of every (layer, tensor, format), looked up by name. Native costs nothing."""

    def __init__(self, scores: Scores) -> None:
        self._scores: dict[tuple[int, str, str], Score] = {(score.layer, score.tensor, score.format): score for score in scores.scores}

    def find(self, layer: int, tensor: str, name: str) -> Score | None:
        """The score, None for native. Raises BadInput when it was not measured."""
        if name == NATIVE:
            return None
        score = self._scores.get((layer, tensor, name))
        if score is None:
            raise BadInput(
                f"scores.json: no score for layer {layer}, {tensor}, {name}, which the menu allows; run the stage score with this plan"
            )
        return score

    def kl_nats(self, layer: int, tensor: str, name: str) -> float:
        """Isolated KL, never below 0: a negative one is noise."""
        score = self.find(layer, tensor, name)
        return 0.0 if score is None else max(score.kl_nats, 0.0)

    def weight_nats(self, layer: int, tensor: str, name: str) -> float:
        score = self.find(layer, tensor, name)
        return 0.0 if score is None or score.at_floor else max(score.kl_nats, 0.0)


def groups_of(geometry: Geometry, prices: PriceList, menu: Menu, capability: Capability) -> tuple[Group, ...]:
    """One group per tensor of each owner layer; one per layer where the target wants K and V alike.

    Raises BadInput when a layer has no legal format, or a score is missing.
    """
    groups: list[Group] = []
    for owner, layer in enumerate(geometry.owners):
        if capability.k_not_v:
            for tensor in ("k", "v"):
                groups.append(Group(owner, _tensor_choices(layer, tensor, geometry.native_dtype, prices, menu, capability)))
        else:
            groups.append(Group(owner, _layer_choices(layer, geometry.native_dtype, prices, menu, capability)))
    for group in groups:
        if not group.choices:
            raise BadInput(f"formats: none of the menu is legal for layer {geometry.owners[group.owner].index} on {capability.target}")
    return tuple(groups)


def above_floor(group: Group) -> Group:
    """The same choices, weighed by their measured losses also where these are at the noise floor."""
    return Group(group.owner, tuple(replace(choice, weight_nats=choice.kl_nats) for choice in group.choices))


def pairs_of(groups: tuple[Group, ...], taken: tuple[Choice, ...]) -> tuple[Pair, ...]:
    """The map that the taken choices make, a pair per owner layer."""
    names: dict[int, dict[str, str]] = {}
    for group, choice in zip(groups, taken, strict=True):
        mine = names.setdefault(group.owner, {})
        if choice.k is not None:
            mine["k"] = choice.k
        if choice.v is not None:
            mine["v"] = choice.v
    return tuple(Pair(**names[owner]) for owner in sorted(names))


def predicted_kl_nats(geometry: Geometry, prices: PriceList, pairs: tuple[Pair, ...]) -> float:
    """Sum of the isolated KL of a whole map: in FP32 isolated scores are nearly additive."""
    return sum(
        prices.kl_nats(layer.index, "k", pair.k) + prices.kl_nats(layer.index, "v", pair.v)
        for layer, pair in zip(geometry.owners, pairs, strict=True)
    )


def _tensor_choices(
    layer: Layer, tensor: str, native_dtype: str, prices: PriceList, menu: Menu, capability: Capability
) -> tuple[Choice, ...]:
    is_k = tensor == "k"
    head_dim, names = (layer.k_dim, menu.k) if is_k else (layer.v_dim, menu.v)
    return tuple(
        Choice(
            k=name if is_k else None,
            v=None if is_k else name,
            bytes_per_token=layer.kv_heads * law(name, native_dtype).row_bytes(head_dim),
            kl_nats=prices.kl_nats(layer.index, tensor, name),
            weight_nats=prices.weight_nats(layer.index, tensor, name),
        )
        for name in legal_formats(names, head_dim, native_dtype, capability)
    )


def _layer_choices(layer: Layer, native_dtype: str, prices: PriceList, menu: Menu, capability: Capability) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            k=pair.k,
            v=pair.v,
            bytes_per_token=layer_bytes_per_token(layer, pair, native_dtype),
            kl_nats=prices.kl_nats(layer.index, "k", pair.k) + prices.kl_nats(layer.index, "v", pair.v),
            weight_nats=prices.weight_nats(layer.index, "k", pair.k) + prices.weight_nats(layer.index, "v", pair.v),
        )
        for pair in layer_pairs(layer, menu, native_dtype, capability)
    )
