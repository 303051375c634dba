"""What a cache of transformers really holds, as JSON lines: `python -m oracle.held [MODEL_TYPE[/SHAPE]…]`."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import warnings
from typing import Any

from oracle.run import PREFILLS, WITHOUT, all_model_types, build, fill
from oracle.shrink import shapes, small_config
from oracle.weigh import watching, weigh

LIMIT_S, LIMIT_BYTES = 60, 3 * 2**30


def hold(name: str) -> dict[str, Any]:
    """Build, run and weigh "model_type" or "model_type/shape".

    config: what the model's config.json holds when it is saved; whole: the same with every default written out.
    language: the configuration of its language model, whole. held: tokens and tensors after each prefill and each step.
    writers: which module updates which layer of the cache.
    """
    from transformers import CONFIG_MAPPING

    model_type, _, shape = name.partition("/")
    if model_type in WITHOUT:
        raise NotImplementedError(WITHOUT[model_type])
    model = build(model_type, small_config(CONFIG_MAPPING[model_type], shape or "small"))
    record: dict[str, Any] = {
        "config": json.loads(model.config.to_json_string()),
        "whole": json.loads(model.config.to_json_string(use_diff=False)),
        "language": json.loads(model.config.get_text_config(decoder=True).to_json_string(use_diff=False)),
        "held": [],
    }
    with watching(model) as writers:
        for tokens in PREFILLS:
            for count, cache in fill(model, tokens):
                record["held"].append({"tokens": count, "tensors": [vars(each) for each in weigh(cache)]})
        record["writers"] = writers(cache)
    return record


def hold_apart(name: str) -> dict[str, Any]:
    """`hold` in a process of its own with limits on time and memory: a crash of one model never stops the table."""
    started = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
        signal.alarm(LIMIT_S)
        try:
            result = {"status": "ran"} | hold(name)
        except BaseException as error:
            result = {"status": "skipped", "reason": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe, default=str)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    result = json.loads(data) if data else {"status": "skipped", "reason": f"the process ended with status {status}"}
    return {"name": name, "model_type": name.partition("/")[0], **result, "seconds": round(time.monotonic() - started, 1)}


def prepare() -> None:
    """Run one model here: that imports once what every child needs."""
    warnings.filterwarnings("ignore")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    hold("t5")


def all_names() -> list[str]:
    """Every model type, in every shape."""
    types = all_model_types()
    return [*types, *(f"{name}/{shape}" for name in types for shape in shapes(name)[1:])]


if __name__ == "__main__":
    prepare()
    for name in sys.argv[1:] or all_names():
        print(json.dumps(hold_apart(name)), flush=True)
