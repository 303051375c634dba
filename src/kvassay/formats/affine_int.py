"""Affine integers: a group of elements shares an FP16 scale and an FP16 offset."""

from kvassay.formats.law import FormatLaw

AFFINE_INTS = tuple(
    FormatLaw(f"int{bits}_g{group}", bits, group=group, scale_bytes=4, source="affine, FP16 scale and offset per group")
    for bits in (2, 3, 4, 5, 6, 8)
    for group in (32, 64, 128)
)
