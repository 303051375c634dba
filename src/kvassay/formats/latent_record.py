"""Records of a latent with its rotary part, as engines pack them: one row of K of 512 + 64 elements, and no V."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.formats.law import FormatLaw

LATENT_ELEMENTS, ROTARY_ELEMENTS = 512, 64


@dataclass(frozen=True)
class LatentRecord(FormatLaw):
    """A low-bit latent beside a rotary part that stays 16-bit; `element_bits` and `group` are the latent's.

    pad_bytes: bytes that only align the record.
    """

    pad_bytes: int = 0

    def why_illegal(self, head_dim: int) -> str | None:
        """One sentence for any row but a latent of 512 elements with 64 rotary ones."""
        if head_dim == LATENT_ELEMENTS + ROTARY_ELEMENTS:
            return None
        return f"{self.name}: a record of {LATENT_ELEMENTS} latent and {ROTARY_ELEMENTS} rotary elements, not of head_dim {head_dim}"

    def payload_bytes(self, head_dim: int) -> int:
        """Bytes of elements in one record."""
        return LATENT_ELEMENTS * self.element_bits // 8 + 2 * ROTARY_ELEMENTS

    def row_scale_bytes(self, head_dim: int) -> int:
        """Bytes of scales in one record, and what aligns them."""
        return self.scale_bytes * LATENT_ELEMENTS // (self.group or LATENT_ELEMENTS) + self.pad_bytes


FP8_DS_MLA = LatentRecord(name="fp8_ds_mla", element_bits=8, group=128, scale_bytes=4, source="vLLM 0.32 cache_dtype fp8_ds_mla")
NVFP4_DS_MLA = LatentRecord(
    name="nvfp4_ds_mla", element_bits=4, group=16, scale_bytes=1, pad_bytes=16, source="vLLM 0.32 cache_dtype nvfp4_ds_mla"
)
