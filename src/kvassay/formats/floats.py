"""Unscaled floats: 16- and 32-bit, and FP8 with one scale per tensor."""

from kvassay.formats.law import FormatLaw

BF16 = FormatLaw("bf16", 16, source="IEEE 754 binary32, upper half")
F16 = FormatLaw("f16", 16, source="IEEE 754 binary16")
F32 = FormatLaw("f32", 32, source="IEEE 754 binary32")
FP8_E4M3 = FormatLaw("fp8_e4m3", 8, tensor_scale=True, source="OCP 8-bit floating point specification, E4M3 (arXiv 2209.05433)")
FP8_E5M2 = FormatLaw("fp8_e5m2", 8, tensor_scale=True, source="OCP 8-bit floating point specification, E5M2 (arXiv 2209.05433)")
