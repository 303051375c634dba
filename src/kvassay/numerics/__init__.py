"""Reference quantizers in torch: what each cache format stores, bit for bit.

`quantizer(name, native_dtype)` gives the one for a format name; `disturb(name, x)` what a cache of that format gives back for x.
"""

from __future__ import annotations

import torch

from kvassay.errors import BadInput
from kvassay.formats import FORMATS, NATIVE
from kvassay.numerics.affine_int import AffineInt
from kvassay.numerics.block_float4 import MxFp4, NvFp4
from kvassay.numerics.floats import PlainFloat
from kvassay.numerics.fp8 import Fp8
from kvassay.numerics.quantizer import Packed, Quantizer
from kvassay.numerics.token_head_int import Int8TokenHead

__all__ = ["QUANTIZERS", "Packed", "Quantizer", "disturb", "quantizer"]

QUANTIZERS: dict[str, Quantizer] = {
    "bf16": PlainFloat(FORMATS["bf16"], torch.bfloat16),
    "f16": PlainFloat(FORMATS["f16"], torch.float16),
    "f32": PlainFloat(FORMATS["f32"], torch.float32),
    "fp8_e4m3": Fp8(FORMATS["fp8_e4m3"], torch.float8_e4m3fn),
    "fp8_e5m2": Fp8(FORMATS["fp8_e5m2"], torch.float8_e5m2),
    "nvfp4": NvFp4(FORMATS["nvfp4"]),
    "mxfp4": MxFp4(FORMATS["mxfp4"]),
    **{name: AffineInt(law) for name, law in FORMATS.items() if law.scale_bytes == 4 and law.group},
    "int8_token_head": Int8TokenHead(FORMATS["int8_token_head"]),
}

NATIVE_NAMES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def quantizer(format_name: str, native_dtype: torch.dtype) -> Quantizer:
    """The quantizer of a format; `native` stores `native_dtype`. Raises BadInput for an unknown name or dtype."""
    if format_name == NATIVE:
        if native_dtype not in NATIVE_NAMES:
            raise BadInput(f"native dtype {native_dtype}: a cache can hold {', '.join(map(str, NATIVE_NAMES))}")
        return QUANTIZERS[NATIVE_NAMES[native_dtype]]
    if format_name not in QUANTIZERS:
        raise BadInput(f"format {format_name!r}: no reference numerics; known: {NATIVE}, {', '.join(QUANTIZERS)}")
    return QUANTIZERS[format_name]


def disturb(format_name: str, x: torch.Tensor) -> torch.Tensor:
    """What a cache of this format gives back for `x` [..., head_dim], in x's dtype and without gradient; `native` returns `x` itself."""
    if format_name == NATIVE:
        return x
    chosen = quantizer(format_name, x.dtype)
    with torch.no_grad():  # rounding has no useful gradient, and a stored one would keep every graph alive
        return chosen.unpack(chosen.pack(x), x.dtype).detach()
