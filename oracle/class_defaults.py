"""Write `geometry/configuration/class_defaults.json`: what each configuration class of transformers fills in where a config.json is silent.

    python -m oracle.class_defaults

Per model_type: `names` (attribute -> the key that a config.json holds), `defaults` (only what the geometry readers ask for), `own` (the
class's keys that speak of a layout), and `text` (the nested key of the language model, and its model_type). A test compares the file
with the installed library.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import warnings
from pathlib import Path
from typing import Any

from kvassay.geometry.configuration.unread import speaks_of

TABLE = Path(__file__).parent.parent / "src" / "kvassay" / "geometry" / "configuration" / "class_defaults.json"

KEYS = frozenset(
    """
    num_hidden_layers hidden_size num_attention_heads num_key_value_heads head_dim v_head_dim max_position_embeddings
    num_kv_heads multi_query new_decoder_architecture alibi kv_channels attention_head_dim attention_hidden_size
    sliding_window use_sliding_window max_window_layers sliding_window_pattern layer_types attention_chunk_size no_rope_layer_interval
    no_rope_layers window_size sliding_window_size attention_window_size global_attn_every_n_layers attention_types block_types
    prefix_dense_sliding_window_pattern first_k_dense_replace local_layer_ids keep_window_size
    swa_num_key_value_heads swa_head_dim swa_v_head_dim global_head_dim num_global_key_value_heads attention_k_eq_v num_kv_shared_layers
    kv_lora_rank qk_rope_head_dim qk_nope_head_dim index_head_dim index_topk index_n_heads indexer_head_dim index_kpool indexer_types
    attn_layer_period attn_layer_offset layers_block_type full_attn_idxs full_attention_interval hybrid_layer_ids
    mamba_d_state mamba_d_conv mamba_expand mamba_n_heads mamba_d_head mamba_n_groups mamba_d_ssm n_mamba_heads mamba_ngroups mamba_headdim
    state_size conv_kernel expand n_groups num_heads time_step_rank ssm_state_size mamba_num_heads mamba_head_dim mamba_ssm_cache_dtype
    linear_conv_kernel_dim linear_key_head_dim linear_value_head_dim linear_num_key_heads linear_num_value_heads linear_head_dim
    linear_num_heads short_conv_kernel_size conv_L_cache conv1d_width lru_width number_of_conv_states conv_kernel_size
    qk_dim_factor v_dim_factor inference_state_dtype
    is_encoder_decoder decoder_layers decoder_attention_heads d_model d_kv num_decoder_layers num_layers n_positions max_source_positions
    max_target_positions num_decoder_attention_heads decoder_num_hidden_layers decoder_num_attention_heads decoder_num_key_value_heads
    max_encoder_position_embeddings max_decoder_position_embeddings max_speech_positions max_text_positions add_cross_attention
    cross_num_attention_heads cross_num_key_value_heads cross_head_dim cross_hidden_size
    cross_attention_layers cross_layer_interval num_nextn_predict_layers mtp_num_hidden_layers num_mtp_layers d_head
""".split()  # noqa: SIM905
)

# Where false differs from absent: a class with this switch has its window off unless the file says otherwise.
SWITCHES = frozenset({"use_sliding_window"})


def main() -> None:
    """Write the table of the installed transformers."""
    made = table()
    rows = (f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in made["types"].items())
    TABLE.write_text(f'{{"transformers": "{made["transformers"]}", "types": {{\n' + ",\n".join(rows) + "\n}}\n")


def table() -> dict[str, Any]:
    """The table, from every class that transformers registers."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import transformers
    from transformers import CONFIG_MAPPING

    rows = {name: _row(CONFIG_MAPPING[name]) for name in sorted(CONFIG_MAPPING.keys())}
    return {"transformers": transformers.__version__, "types": {name: row for name, row in rows.items() if row}}


def _row(config_class: Any) -> dict[str, Any]:
    names = {attribute: key for attribute, key in config_class.attribute_map.items() if attribute in KEYS}
    wanted = KEYS | set(names.values())
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(config_class)
        if field.name in wanted
        and isinstance(field.default, (int, float, str, tuple, list))
        and (field.default is not False or field.name in SWITCHES)
    }
    own = sorted(field.name for field in dataclasses.fields(config_class) if speaks_of(field.name))
    row: dict[str, Any] = {"names": names, "defaults": defaults, "own": own}
    if text := _text(config_class):
        row["text"] = text
    return {key: value for key, value in row.items() if value}


def _text(config_class: Any) -> list[str] | None:
    """The nested key that holds the decoder, and the model_type that it has by default."""
    try:
        config = config_class()
        nested = config.get_text_config(decoder=True)
    except Exception:  # some composites demand their parts
        return None
    if nested is config:
        return None
    key = next((key for key, value in vars(config).items() if value is nested), None)
    return [key, nested.model_type] if key else None


if __name__ == "__main__":
    main()
