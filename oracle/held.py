"""What a cache of transformers really holds: a small model with random weights, run on a few tokens, its cache weighed tensor by tensor."""

from __future__ import annotations

import inspect
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ENCODER_TOKENS = 11
SHORT_TOKENS, LONG_TOKENS = 5, 37
LIMIT_S, LIMIT_BYTES = 90, 6 * 2**30


@dataclass(frozen=True)
class Tensor:
    """One tensor of the cache, named by its path: attributes, keys and indices from the cache object on."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


def weigh(cache: Any) -> tuple[Tensor, ...]:
    """Every floating-point tensor in `cache`, each storage once; positions and counters are bookkeeping."""
    import torch

    seen: dict[tuple[int, tuple[int, ...]], Tensor] = {}
    visited: set[int] = set()

    def walk(thing: Any, path: str) -> None:
        if isinstance(thing, torch.Tensor):
            if thing.numel() and thing.dim() and thing.is_floating_point():
                key = (thing.data_ptr(), tuple(thing.shape))
                seen.setdefault(
                    key, Tensor(path, tuple(thing.shape), str(thing.dtype).removeprefix("torch."), thing.numel() * thing.element_size())
                )
            return
        if id(thing) in visited or isinstance(thing, (str, bytes, int, float, bool, type(None))):
            return
        visited.add(id(thing))
        for name, inner in _inside(thing):
            walk(inner, f"{path}.{name}")

    walk(cache, "")
    return tuple(seen.values())


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, dict):
        yield from ((str(key), value) for key, value in thing.items())
    elif isinstance(thing, (list, tuple)):
        yield from ((str(index), value) for index, value in enumerate(thing))
    elif type(thing).__module__.startswith("transformers") and not hasattr(thing, "forward") and not hasattr(thing, "to_json_string"):
        yield from ((name, value) for name, value in vars(thing).items() if not name.startswith("_sliding_window"))


def hold(model_type: str) -> dict[str, Any]:
    """Build, run and weigh one model type: its config.json, caches at two lengths, and the names of its modules."""
    import torch
    from transformers import (
        CONFIG_MAPPING,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoModelForSeq2SeqLM,
        AutoModelForSpeechSeq2Seq,
    )
    from transformers.models.auto import modeling_auto

    from oracle.shrink import small_config

    torch.manual_seed(0)
    config = small_config(CONFIG_MAPPING[model_type])
    factory = next(
        factory
        for factory, names in (
            # A type in several tables is run as the whole of it: with its encoder where it has one.
            (AutoModelForSpeechSeq2Seq, modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES),
            (AutoModelForSeq2SeqLM, modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
            (AutoModelForImageTextToText, modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES),
            (AutoModelForCausalLM, modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
        )
        if model_type in names
    )
    if hasattr(config, "is_decoder") and not getattr(config, "is_encoder_decoder", False):
        config.is_decoder = True
    model = factory.from_config(config, dtype=torch.bfloat16).eval()
    result: dict[str, Any] = {
        "model_type": model_type,
        "config": json.loads(config.to_json_string(use_diff=False)) | {"dtype": "bfloat16"},
        "modules": [name for name, module in model.named_modules() if _attends(module)],
        "held": [],
    }
    for tokens in (SHORT_TOKENS, LONG_TOKENS):
        cache = _run(model, tokens)
        result["held"].append({"tokens": tokens, "tensors": [vars(each) for each in weigh(cache)]})
    return result


def _attends(module: Any) -> bool:
    name = type(module).__name__
    return any(word in name for word in ("Attention", "Mixer", "Delta", "Mamba", "Conv", "MLA"))


def _run(model: Any, tokens: int) -> Any:
    """The cache after a prefill of all but one token and one step of decoding."""
    import torch

    ids = torch.randint(5, 80, (1, tokens))
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            encoder = _encoder_inputs(model)
            first = model(**encoder, decoder_input_ids=ids[:, :-1], use_cache=True)
            return model(**encoder, decoder_input_ids=ids[:, -1:], past_key_values=first.past_key_values, use_cache=True).past_key_values
        first = model(input_ids=ids[:, :-1], use_cache=True, **_extra_inputs(model))
        name = next((name for name in ("past_key_values", "cache_params", "state") if first.get(name) is not None), None)
        if name is None:
            raise RuntimeError("the model returns no cache")
        return model(input_ids=ids[:, -1:], use_cache=True, **{name: first[name]})[name]


def _encoder_inputs(model: Any) -> dict[str, Any]:
    """Tokens where the encoder reads tokens; else what it would have made of images or sound."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    if "input_ids" in inspect.signature(model.forward).parameters:
        return {"input_ids": torch.randint(5, 80, (1, ENCODER_TOKENS))}
    encoded = BaseModelOutput(last_hidden_state=torch.randn(1, ENCODER_TOKENS, _encoder_width(model), dtype=torch.bfloat16))
    encoded.attention_mask = None
    return {"encoder_outputs": encoded}


def _extra_inputs(model: Any) -> dict[str, Any]:
    import torch

    if model.config.model_type == "mllama":
        width = model.config.get_text_config().hidden_size
        return {"cross_attention_states": torch.randn(1, ENCODER_TOKENS, width, dtype=torch.bfloat16)}
    return {}


def _encoder_width(model: Any) -> int:
    config = model.config
    encoder = getattr(config, "encoder", None) or getattr(config, "encoder_config", None) or config
    text = getattr(encoder, "text_config", encoder)
    return int(next(getattr(text, name) for name in ("d_model", "hidden_size") if getattr(text, name, None)))


def hold_apart(model_type: str) -> dict[str, Any]:
    """`hold` in a process of its own with limits on time and memory: a crash of one model never stops the table."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
        signal.alarm(LIMIT_S)
        try:
            result = hold(model_type)
        except BaseException as error:
            result = {"model_type": model_type, "skipped": f"{type(error).__name__}: {str(error)[:300]}"}
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe, default=str)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(data) if data else {"model_type": model_type, "skipped": f"the process ended with status {status}"}


def prepare() -> None:
    """Import once what every child needs."""
    warnings.filterwarnings("ignore")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)


def all_model_types() -> list[str]:
    """Every model type with a causal, encoder-decoder, image-text or speech class."""
    from transformers.models.auto import modeling_auto

    tables = (
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    )
    return list(dict.fromkeys(name for table in tables for name in table))


if __name__ == "__main__":
    prepare()
    for name in sys.argv[1:] or all_model_types():
        started = time.monotonic()
        print(json.dumps(hold_apart(name) | {"seconds": round(time.monotonic() - started, 1)}), flush=True)
