"""The byte law of a cache format: pure arithmetic, shared by pricing and by the reference engine's storage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FormatLaw:
    """How many bytes one row (the K or V vector of one token and one head, `head_dim` elements) takes.

    element_bits: bits of one stored element, without scales.
    group: elements that share a scale, None when no scale is stored with the data; `head_dim` must be a multiple of it.
    whole_head: the one scale covers the whole row, whatever head_dim is (`group` is then None).
    scale_bytes: bytes of scale (and offset) stored per group, or per row when `whole_head`.
    tensor_scale: the format has one more scale per tensor, listed beside the map, not counted in the bits.
    source: specification or paper that fixes the layout.
    """

    name: str
    element_bits: int
    group: int | None = None
    whole_head: bool = False
    scale_bytes: int = 0
    tensor_scale: bool = False
    source: str = ""

    def why_illegal(self, head_dim: int) -> str | None:
        """One sentence when a head of `head_dim` elements cannot have this format, else None."""
        if self.group and head_dim % self.group:
            return f"{self.name}: group {self.group} does not divide head_dim {head_dim}"
        if head_dim * self.element_bits % 8:
            return f"{self.name}: {head_dim} elements of {self.element_bits} bits do not fill whole bytes"
        return None

    def payload_bytes(self, head_dim: int) -> int:
        """Bytes of elements in one row."""
        return head_dim * self.element_bits // 8

    def row_scale_bytes(self, head_dim: int) -> int:
        """Bytes of scales and offsets in one row."""
        if self.whole_head:
            return self.scale_bytes
        return self.scale_bytes * (head_dim // self.group) if self.group else 0

    def row_bytes(self, head_dim: int) -> int:
        """Bytes of one row, scales included."""
        return self.payload_bytes(head_dim) + self.row_scale_bytes(head_dim)

    def bits(self, head_dim: int) -> float:
        """Effective bits per element, scales included."""
        return 8 * self.row_bytes(head_dim) / head_dim
