"""Fixed state of recurrent layers: what one layer keeps per request, whatever its length.

Recurrent matrices are FP32 unless the file names another dtype; convolutions keep the last kernel − 1 columns in the model's dtype
(engines; transformers keeps `kernel` columns). Shapes follow transformers 5.19 (`modeling_*.py` of each family).
"""

from __future__ import annotations

from collections.abc import Callable

from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_WIDTH, Keys, shown
from kvassay.geometry.layouts.attention import Shape, share_of_hidden
from kvassay.records.geometry import STATE_BYTES, State

# States of one layer, from the keys, the native dtype, and the shape of the attention beside it where there is one.
StateRule = Callable[[Keys, str, Shape | None], tuple[State, ...]]


def mamba(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """Mamba: a column of `state_size` per channel."""
    width = _mamba_width(keys)
    return (_matrix(keys, width, _of(keys, "state_size", "mamba_d_state")), _conv(width, 1, _kernel(keys), dtype))


def mamba2(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """Mamba-2: head_dim × state per head; the convolution runs over the channels and over B and C of every group."""
    heads = _of(keys, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    state = _of(keys, "ssm_state_size", "mamba_d_state", "state_size")
    groups = _of(keys, "n_groups", "mamba_n_groups", "mamba_ngroups")
    width = _mamba2_width(keys, heads)
    kernel = _kernel(keys)
    return (
        _matrix(keys, heads, width // heads * state),
        _conv(heads, width // heads, kernel, dtype),
        State(name="conv_groups", parts=groups, elements_per_part=2 * state * (kernel - 1), dtype=dtype),
    )


def gated_delta(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """Gated DeltaNet: a key × value matrix per value head; the convolution runs over Q, K and V."""
    k_heads, v_heads = _of(keys, "linear_num_key_heads"), _of(keys, "linear_num_value_heads")
    k_dim, v_dim, kernel = _of(keys, "linear_key_head_dim"), _of(keys, "linear_value_head_dim"), _of(keys, "linear_conv_kernel_dim")
    return (
        _matrix(keys, v_heads, k_dim * v_dim),
        State(name="conv_qk", parts=k_heads, elements_per_part=2 * k_dim * (kernel - 1), dtype=dtype),
        State(name="conv_v", parts=v_heads, elements_per_part=v_dim * (kernel - 1), dtype=dtype),
    )


def kimi_delta(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """Kimi Delta Attention: a square matrix per head and three convolutions, all FP32."""
    inner = keys.inside("linear_attn_config") if keys.has("linear_attn_config") else keys
    heads = _of(inner, "linear_num_heads", "num_heads")
    width = _of(inner, "linear_head_dim", "head_dim")
    kernel = _of(inner, "linear_conv_kernel_dim", "short_conv_kernel_size")
    return (
        _matrix(keys, heads, width * width),
        State(name="conv", parts=heads, elements_per_part=3 * width * (kernel - 1), dtype="float32"),
    )


def lightning(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """Lightning attention: a square matrix per query head, in the model's dtype."""
    heads = keys.whole("num_attention_heads", MOST_HEADS)
    width = keys.maybe("head_dim", MOST_HEADS) or share_of_hidden(keys, heads)
    return (State(name="recurrent", parts=heads, elements_per_part=width * width, dtype=dtype),)


def short_conv(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """A short convolution over the hidden channels and nothing else (LFM2)."""
    return (_conv(keys.whole("hidden_size", MOST_WIDTH), 1, _of(keys, "conv_L_cache"), dtype),)


def gated_lru(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """RG-LRU: one FP32 number per channel and a short convolution (RecurrentGemma)."""
    width = keys.maybe("lru_width") or keys.whole("hidden_size", MOST_WIDTH)
    return (State(name="recurrent", parts=width, elements_per_part=1, dtype="float32"), _conv(width, 1, _of(keys, "conv1d_width"), dtype))


def rwkv(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """RWKV-4: the last token of both mixes, and numerator, denominator and maximum in FP32."""
    hidden = keys.whole("hidden_size", MOST_WIDTH)
    width = keys.maybe("attention_hidden_size") or hidden
    return (
        State(name="shift", parts=hidden, elements_per_part=2, dtype=dtype),
        State(name="recurrent", parts=width, elements_per_part=3, dtype="float32"),
    )


def four_convolutions(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """FP32 convolutions over K, V and twice over the hidden channels (Inkling)."""
    if beside is None:
        raise keys.refusal("layer_types", "names a layer of convolutions alone, which this family does not have")
    kernel, hidden = _kernel(keys), keys.whole("hidden_size", MOST_WIDTH)
    over_kv = State(name="conv_kv", parts=beside.kv_heads, elements_per_part=(beside.k_dim + beside.v_dim) * (kernel - 1), dtype="float32")
    return (over_kv, State(name="conv_hidden", parts=2, elements_per_part=hidden * (kernel - 1), dtype="float32"))


def delayed_values(keys: Keys, dtype: str, beside: Shape | None) -> tuple[State, ...]:
    """Two columns of Q and K before their convolutions, and half of each value head of the last token (ZAYA)."""
    if beside is None:
        raise keys.refusal("layer_types", "names a layer without attention, which this family does not have")
    channels = (keys.whole("num_attention_heads", MOST_HEADS) + beside.kv_heads) * beside.k_dim
    return (
        State(name="qk_columns", parts=1, elements_per_part=2 * channels, dtype=dtype),
        State(name="delayed_v", parts=beside.kv_heads, elements_per_part=beside.v_dim // 2, dtype=dtype),
    )


def by_keys(keys: Keys) -> StateRule | None:
    """The rule that the keys of an unknown model_type speak of, None where they speak of none."""
    signs: tuple[tuple[str, StateRule], ...] = (
        ("linear_attn_config", kimi_delta),
        ("linear_num_value_heads", gated_delta),
        ("mamba_num_heads", mamba2),
        ("mamba_n_heads", mamba2),
        ("mamba_d_state", mamba),
        ("conv_L_cache", short_conv),
    )
    return next((rule for key, rule in signs if keys.has(key)), None)


def _of(keys: Keys, *names: str) -> int:
    """The whole number under the first of these names that has one. Raises BadInput naming the first."""
    for name in names:
        if keys.get(name) is not None:
            return keys.whole(name)
    raise keys.refusal(names[0], "missing, and nothing is assumed for it")


def _kernel(keys: Keys) -> int:
    return _of(keys, "conv_kernel", "mamba_d_conv", "conv_kernel_size")


def _mamba_width(keys: Keys) -> int:
    if keys.model_type in ("mamba", "falcon_mamba") and keys.has("intermediate_size"):
        return keys.whole("intermediate_size")
    return _of(keys, "expand", "mamba_expand") * keys.whole("hidden_size", MOST_WIDTH)


def _mamba2_width(keys: Keys, heads: int) -> int:
    """Channels: heads × head size where both are written (Nemotron-H differs from expand × hidden there)."""
    for name in ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim"):
        # "auto" leaves it to the line below.
        if keys.get(name) not in (None, "auto") and (name != "head_dim" or keys.model_type == "mamba2"):
            return heads * keys.whole(name)
    width = keys.maybe("mamba_d_ssm") or _of(keys, "mamba_expand", "expand") * keys.whole("hidden_size", MOST_WIDTH)
    if width % heads:
        raise keys.refusal("mamba_n_heads", f"{heads} heads do not divide {width} channels")
    return width // heads * heads


def _conv(parts: int, each: int, kernel: int, dtype: str) -> State:
    return State(name="conv", parts=parts, elements_per_part=each * (kernel - 1), dtype=dtype)


def _matrix(keys: Keys, parts: int, each: int) -> State:
    dtype = "float32"
    for name in ("mamba_ssm_cache_dtype", "mamba_ssm_dtype"):
        if keys.has(name) and keys.text(name) != "auto":
            dtype = keys.text(name).removeprefix("torch.")
            if dtype not in STATE_BYTES:
                raise keys.refusal(name, f"{shown(dtype)} is no dtype of a state; known: {', '.join(STATE_BYTES)}")
    return State(name="recurrent", parts=parts, elements_per_part=each, dtype=dtype)
