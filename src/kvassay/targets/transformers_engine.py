"""The reference engine: a transformers model behind one packed cache object per layer, one sequence at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import torch
import transformers
from tokenizers.decoders import DecodeStream

from kvassay.cache import MixedCache
from kvassay.cache.mixed import MixedLayer
from kvassay.errors import BadInput
from kvassay.formats import law
from kvassay.geometry.config import read_geometry
from kvassay.geometry.price import bytes_per_token
from kvassay.models.digest import weights_digest
from kvassay.models.loading import load_model, load_tokenizer
from kvassay.records.frontier import Pair
from kvassay.records.kv_map import KVMap
from kvassay.serving.protocol import DoesNotFit, GeneratedToken, GenerateParams, KVState, PromptLogprob
from kvassay.solving.kv_map import check_map_layers, map_pairs
from kvassay.targets.launch import Launch, read_export
from kvassay.version import TOOL_VERSION

PREFILL_CHUNK_TOKENS = 512
SELF_TEST_TOKENS = 8


class TransformersEngine:
    """Serves `kv_map` on the weights of `launch`. Prefill and decode both read the quantized cache.

    kv_memory_bytes bounds the cache; a request that cannot fit is refused before anything is allocated.
    """

    def __init__(self, folder: Path, kv_memory_bytes: int, max_context_tokens: int | None = None) -> None:
        self.kv_map, launch = read_export(folder)
        model_folder = folder / launch.model
        check_weights(model_folder, launch, self.kv_map)
        self.geometry = read_geometry(model_folder)
        check_map_layers(self.kv_map, self.geometry)
        self.pairs = map_pairs(self.kv_map)
        self.bytes_per_token = bytes_per_token(self.geometry, self.pairs)
        self.model_name = launch.model_name
        self.layer_facts: tuple[dict[str, Any], ...] = ()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.dtype = getattr(torch, launch.native_dtype)
        self.model = load_model(model_folder, self.dtype, launch.trust_remote_code).to(self.device)
        self.tokenizer = load_tokenizer(model_folder, launch.trust_remote_code)
        self.kv_memory_bytes = kv_memory_bytes
        self.capacity_tokens = kv_memory_bytes // self.bytes_per_token
        limits = [self.geometry.max_position_embeddings, max_context_tokens]
        self.max_context_tokens = min([self.capacity_tokens, *(limit for limit in limits if limit)])
        self.weights_bytes = sum(each.nbytes for each in self.model.parameters())
        self.vocab_size: int = self.model.config.get_text_config().vocab_size
        self.eos_ids = end_of_sequence_ids(self.model)
        self.cache: MixedCache | None = None
        self.bytes_peak = 0
        self.measured_bytes_per_token = 0.0
        self._self_test()

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def render_chat(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        """Token ids of a chat by the model's own template. Raises BadInput when it has none."""
        if not self.tokenizer.chat_template:
            raise BadInput(f"{self.model_name}: the model has no chat template; use /v1/completions")
        text = self.tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def check_fits(self, prompt_tokens: int, max_tokens: int) -> None:
        if prompt_tokens + max_tokens > self.max_context_tokens:
            raise DoesNotFit(prompt_tokens + max_tokens, self.max_context_tokens)

    def generate(self, prompt: Sequence[int], params: GenerateParams, cancel: Event) -> Iterator[GeneratedToken]:
        """Tokens as they come. The cache is freed when the iterator ends or is closed."""
        self.check_fits(len(prompt), params.max_tokens)
        self._check_ids(prompt)
        generator = torch.Generator(self.device)
        if params.seed is not None:
            generator.manual_seed(params.seed)
        stream = DecodeStream(skip_special_tokens=True)
        try:
            logits = self._prefill(prompt, len(prompt) + params.max_tokens)
            for number in range(1, params.max_tokens + 1):
                token_id, logprobs = choose(logits, params, generator)
                ended = token_id in self.eos_ids and not params.ignore_eos
                piece = "" if ended else stream.step(self.tokenizer.backend_tokenizer, token_id) or ""
                finish = "stop" if ended else "length" if number == params.max_tokens else None
                yield GeneratedToken(token_id, piece, float(logprobs[token_id]), top(logprobs, params.top_logprobs), finish)
                if finish or cancel.is_set():
                    return
                logits = self._forward([token_id])[-1]
        finally:
            self._release()

    def prompt_logprobs(self, prompt: Sequence[int], top_k: int) -> list[PromptLogprob]:
        """Teacher-forced log-probabilities through the same packed cache that serves."""
        self.check_fits(len(prompt), 0)
        self._check_ids(prompt)
        found = [PromptLogprob(prompt[0], None)]
        try:
            self._open(len(prompt))
            for start in range(0, len(prompt), PREFILL_CHUNK_TOKENS):
                chunk = list(prompt[start : start + PREFILL_CHUNK_TOKENS])
                targets = list(prompt[start + 1 : start + 1 + len(chunk)])
                logprobs = self._forward(chunk, keep=len(chunk))[: len(targets)].log_softmax(-1)
                best = logprobs.topk(min(top_k, logprobs.shape[-1]), dim=-1)
                for row, target in enumerate(targets):
                    pairs = tuple(zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True))
                    logprob = logprobs[row, target]
                    rank = int((logprobs[row] > logprob).sum()) + 1
                    found.append(PromptLogprob(target, float(logprob), pairs, rank))
        finally:
            self._release()
        return found

    def kv_state(self) -> KVState:
        cache = self.cache
        return KVState(
            model=self.model_name,
            model_sha256=self.kv_map.model,
            map_digest=self.kv_map.digest,
            layers=self.layer_facts,
            scales=self.kv_map.scales,
            scales_sha256=None,
            bytes_held=cache.bytes_held if cache else 0,
            bytes_peak=self.bytes_peak,
            tokens_held=cache.tokens_held if cache else 0,
            bytes_per_token=self.measured_bytes_per_token,
            capacity_tokens=self.capacity_tokens,
            kv_memory_bytes=self.kv_memory_bytes,
            weights_bytes=self.weights_bytes,
            engine="transformers",
            engine_version=transformers.__version__,
            build=f"kvassay {TOOL_VERSION}, torch {torch.__version__}",
            extra={
                "max_context_tokens": self.max_context_tokens,
                "device": str(self.device),
                "concurrent_sequences": 1,
                "scales_sha256_reason": "scales are cast = 1.0, no scale file",
            },
        )

    def _open(self, tokens: int) -> None:
        self.cache = MixedCache(self.pairs, self.geometry, tokens, self.dtype, self.device)

    def _release(self) -> None:
        """Free the cache; what it held stays known as a measured figure."""
        if self.cache and self.cache.tokens_held:
            self.bytes_peak = max(self.bytes_peak, self.cache.bytes_allocated)
            self.measured_bytes_per_token = self.cache.bytes_held / self.cache.tokens_held
        self.cache = None

    def _prefill(self, prompt: Sequence[int], capacity_tokens: int) -> torch.Tensor:
        self._open(capacity_tokens)
        return self._forward(list(prompt))[-1]

    @torch.inference_mode()
    def _forward(self, token_ids: list[int], keep: int = 1) -> torch.Tensor:
        """FP32 logits [keep, vocab] of the last `keep` of `token_ids`, appended to the cache."""
        ids = torch.tensor([token_ids], device=self.device)
        logits: torch.Tensor = self.model(ids, past_key_values=self.cache, use_cache=True, logits_to_keep=keep).logits[0].float()
        if not torch.isfinite(logits).all():
            raise BadInput(f"{self.model_name}: logits are not finite; the weights are damaged or this format map breaks the model")
        return logits

    def _check_ids(self, prompt: Sequence[int]) -> None:
        if not prompt:
            raise BadInput("the prompt is empty; send at least one token")
        if bad := [token for token in prompt if not 0 <= token < self.vocab_size]:
            raise BadInput(f"token id {bad[0]} is outside the vocabulary of {self.vocab_size}")

    def _layer_fact(self, layer: MixedLayer, pair: Pair) -> dict[str, Any]:
        """Formats and dtypes of one layer, read from its running storage rather than from the map that asked for them."""
        fact: dict[str, Any] = {"index": layer.index}
        for tensor, asked, rows in (("k", pair.k, layer.k), ("v", pair.v, layer.v)):
            stored = rows.quantizer.law.name
            fact[tensor] = asked if law(asked, self.geometry.native_dtype).name == stored else stored
            fact[f"{tensor}_dtype"] = str(rows.storage[0].dtype).removeprefix("torch.")
        return fact

    def _self_test(self) -> None:
        """A short run at start: warms the kernels, measures real bytes per token, and refuses broken weights early."""
        if self.max_context_tokens <= 2 * SELF_TEST_TOKENS:
            raise BadInput(
                f"KV memory of {self.kv_memory_bytes} bytes holds {self.capacity_tokens} tokens; "
                f"give at least {(2 * SELF_TEST_TOKENS + 1) * self.bytes_per_token} bytes"
            )
        params = GenerateParams(max_tokens=SELF_TEST_TOKENS, ignore_eos=True)
        start = next(iter(self.eos_ids), 0)
        for number, _ in enumerate(self.generate([start] * SELF_TEST_TOKENS, params, Event())):
            if number == 0 and self.cache:
                self.layer_facts = tuple(self._layer_fact(*each) for each in zip(self.cache.layers, self.pairs, strict=True))
        self.bytes_peak = 0


def check_weights(folder: Path, launch: Launch, kv_map: KVMap) -> None:
    """Raise BadInput when the weights on disk are not those that the map was made for."""
    found = weights_digest(folder)
    if found != launch.weights_sha256:
        raise BadInput(f"{folder}: weights digest is {found[:12]}, the map belongs to {kv_map.model[:12]}; export for these weights")


def end_of_sequence_ids(model: Any) -> frozenset[int]:
    """Token ids that end an answer."""
    ids = model.generation_config.eos_token_id
    return frozenset() if ids is None else frozenset(ids if isinstance(ids, list) else [ids])


def choose(logits: torch.Tensor, params: GenerateParams, generator: torch.Generator) -> tuple[int, torch.Tensor]:
    """The next token id, greedy at temperature 0, and the log-probabilities [vocab] in nats."""
    logprobs = logits.log_softmax(-1)
    if params.temperature == 0:
        return int(logits.argmax()), logprobs
    probabilities = (logits / params.temperature).softmax(-1)
    return int(torch.multinomial(probabilities, 1, generator=generator)), logprobs


def top(logprobs: torch.Tensor, count: int) -> tuple[tuple[int, float], ...]:
    """The `count` most likely (id, logprob), best first."""
    if not count:
        return ()
    best = logprobs.topk(count)
    return tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
