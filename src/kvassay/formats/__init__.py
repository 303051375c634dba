"""Cache formats by name: `FORMATS`, and `native`, which is the model's own dtype."""

from __future__ import annotations

from kvassay.errors import BadInput
from kvassay.formats.affine_int import AFFINE_INTS
from kvassay.formats.block_float4 import MXFP4, NVFP4
from kvassay.formats.floats import BF16, F16, F32, FP8_E4M3, FP8_E5M2
from kvassay.formats.latent_record import FP8_DS_MLA, NVFP4_DS_MLA
from kvassay.formats.law import FormatLaw
from kvassay.formats.token_head_int import INT8_TOKEN_HEAD

__all__ = ["FORMATS", "LATENT_RECORDS", "NATIVE", "FormatLaw", "law"]

NATIVE = "native"

FORMATS: dict[str, FormatLaw] = {
    each.name: each for each in (BF16, F16, F32, FP8_E4M3, FP8_E5M2, NVFP4, MXFP4, *AFFINE_INTS, INT8_TOKEN_HEAD)
}

# Engines' records of a latent: priced, never searched, since they fit one shape of one kind of layer.
LATENT_RECORDS: dict[str, FormatLaw] = {each.name: each for each in (FP8_DS_MLA, NVFP4_DS_MLA)}

NATIVE_DTYPES = {"bfloat16": BF16, "float16": F16, "float32": F32}


def law(name: str, native_dtype: str) -> FormatLaw:
    """The byte law of format `name`; `native` follows `native_dtype` (torch's name, for example "bfloat16").

    Raises BadInput for an unknown name or dtype.
    """
    if name == NATIVE:
        if native_dtype not in NATIVE_DTYPES:
            raise BadInput(f"dtype {native_dtype!r}: no byte law; known: {', '.join(NATIVE_DTYPES)}")
        return NATIVE_DTYPES[native_dtype]
    if name not in FORMATS and name not in LATENT_RECORDS:
        raise BadInput(f"format {name!r}: unknown; known: {', '.join((NATIVE, *FORMATS, *LATENT_RECORDS))}")
    return FORMATS[name] if name in FORMATS else LATENT_RECORDS[name]
