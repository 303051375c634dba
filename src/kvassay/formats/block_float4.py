"""4-bit floats (E2M1) with a small scale per block."""

from kvassay.formats.law import FormatLaw

NVFP4 = FormatLaw("nvfp4", 4, group=16, scale_bytes=1, tensor_scale=True, source="NVFP4: E2M1, one E4M3 scale per 16 elements")
MXFP4 = FormatLaw("mxfp4", 4, group=32, scale_bytes=1, source="OCP Microscaling v1.0: E2M1, one E8M0 scale per 32 elements")
