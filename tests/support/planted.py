"""A tiny random Llama with planted K outliers: collapse under 4-bit K is reproducible in milliseconds.

As in Qwen2.5, the K projection of the first and the last layer has a large bias. It sits in the two slowest RoPE channels, so attention
hardly feels it (a constant shift of all scores), but a group of a 4-bit K that holds it has no step left for the other channels.
"""

from __future__ import annotations

import pydoc_data.topics
from pathlib import Path
from typing import Any

EOS = "<|endoftext|>"
SPECIALS = (EOS, "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def make_planted_model(
    folder: Path,
    *,
    layers: int = 4,
    planted_layers: tuple[int, ...] | None = None,
    outlier: float = 120.0,
    vocab_size: int = 512,
    hidden_size: int = 128,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 64,
    context_tokens: int = 4096,
    seed: int = 0,
) -> Path:
    """Write model and tokenizer (BF16 safetensors) into `folder` and return it.

    planted_layers: layers whose K projection gets a bias of `outlier`; first and last by default.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging as transformers_logging

    tokenizer = make_tokenizer(vocab_size)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=2 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        max_position_embeddings=context_tokens,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
            elif weight.dim() == 2:
                # Attention must matter, or no cache format could lose anything: sharp scores, and an output as large as the stream.
                gain = {"embed_tokens": hidden_size**0.5 * 0.2, "q_proj": 1.5, "k_proj": 1.5, "v_proj": 1.0, "o_proj": 0.5}
                part = name.split(".")[-2]
                weight.normal_(0, gain.get(part, 0.6) / weight.shape[1] ** 0.5, generator=generator)
        for index in planted_layers if planted_layers is not None else (0, layers - 1):
            projection = model.model.layers[index].self_attn.k_proj
            bias, weight = projection.bias.view(kv_heads, head_dim), projection.weight.view(kv_heads, head_dim, hidden_size)
            for channel, sign in ((head_dim // 2 - 1, 1), (head_dim - 1, -1)):
                bias[:, channel] = sign * outlier
                # Nothing but the bias there, so that a format with a floating step (FP8) loses nothing by it.
                weight[:, channel] = 0
    transformers_logging.disable_progress_bar()
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_tokenizer(vocab_size: int = 512) -> Any:
    """A byte-level BPE trained on a few of CPython's documentation topics, with end and chat tokens and a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator((pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics)[:20]), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=EOS, pad_token=EOS, chat_template=CHAT_TEMPLATE)
