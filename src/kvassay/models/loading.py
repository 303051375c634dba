"""Load a prepared model folder with transformers: safetensors only, no network, every weight accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvassay.errors import BadInput
from kvassay.models.quiet import quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# What transformers and safetensors raise for a folder that cannot be loaded.
LOAD_ERRORS = (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError, ImportError, json.JSONDecodeError)


def load_model(folder: Path, dtype: torch.dtype, trust_remote_code: bool = False) -> PreTrainedModel:
    """The causal language model in `folder`, in `dtype`, in evaluation mode and without gradients.

    Raises BadInput naming the folder when it cannot be loaded, or when weights that the model needs are missing from it
    (transformers would fill them with random numbers).
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        with quiet_transformers():
            model, info = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
            )
    except (*LOAD_ERRORS, SafetensorError) as error:
        raise BadInput(f"{folder}: transformers cannot load this model ({one_line(error)})") from error
    problems = [str(name) for kind in ("missing_keys", "mismatched_keys") for name in info.get(kind, ())]
    if problems:
        raise BadInput(
            f"{folder}: {len(problems)} weights are missing or of the wrong shape, first {sorted(problems)[0]}; get the model again"
        )
    loaded: PreTrainedModel = model.eval().requires_grad_(False)
    return loaded


def load_tokenizer(folder: Path, trust_remote_code: bool = False) -> Any:
    """The transformers tokenizer in `folder`. Raises BadInput naming the folder when there is none that loads."""
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code, local_files_only=True)
    except LOAD_ERRORS as error:
        raise BadInput(f"{folder}: transformers cannot load this tokenizer ({one_line(error)})") from error


def one_line(error: BaseException) -> str:
    """The first line of an error's text, at most 300 characters."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
