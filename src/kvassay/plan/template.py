"""The text of a first plan. Every key of the schema stands in it once, with what it means."""

TEMPLATE = """\
# A plan for kvassay: which model, which cache formats, how much memory, and what must hold for a "yes".
# Run it:            kvassay run plan.yaml --out runs/mine
# What it will cost: kvassay run plan.yaml --out runs/mine --dry-run
# Relative paths are relative to this file. A key that is left out has the value shown here.

# The model. Exactly one of
#   folder: a folder with config.json, tokenizer and safetensors
#   gguf: a GGUF file
#   package: "import_name/file.gguf", a file inside an installed Python package
#   hub: "owner/name" on the Hugging Face hub, with revision: the 40-digit commit id
# Here: {facts}.
model:
{model_lines}
  # Code that comes with a model is never run unless this is true.
  trust_remote_code: false

# The engine that will serve. "transformers" is the reference server of kvassay: one sequence at a time, every format.
target: transformers

# What you serve today, if it is not native: one format for K and one for V, measured as an arm of its own.
# incumbent: {{k: fp8_e4m3, v: fp8_e4m3}}

# The formats that the search may give to a layer's K and to its V. "native" is the model's own dtype. Names say bits and group:
# int4_g64 has 4 bits per element and one scale and offset per 64 elements. More formats find better maps and take longer to score.
formats:
  k: [{formats}]
  v: [{formats}]

# How much cache one token may take. Exactly one of
#   bits: effective bits per cached element, scales included (16 is BF16)
#   bytes_per_token: over all layers
#   gib, tokens, requests: so many GiB for so many requests of so many tokens
#   smallest: within gates     the smallest measured map whose loss is at most gates.kl_mean_nats
budget:
  bits: {budget_bits}

# Text, in three splits that share no stretch of overlap_tokens tokens: for scoring formats, for choosing among maps, and held out
# for the proof. builtin text is on every machine; files are your own UTF-8 text files, which are read and never copied.
corpora:
  builtin: [topics, stdlib]
  files: []
  overlap_tokens: 13
  scoring: {{documents: 16, tokens: 96}}
  choice: {{documents: 20, tokens: 48}}
  heldout: {{documents: 20, tokens: 64}}

# Scoring. `sketch` prices every format from one forward and `probes` backward passes a document, to second order, with a standard error;
# `exact` runs every candidate: slower by their number, and the check. float32 sees the small losses that bfloat16 arithmetic drowns;
# "model" scores in the model's own dtype. Where exact, a loss under floor_multiple times the measured noise floor counts as none.
score:
  method: sketch
  probes: 2
  dtype: float32
  floor_multiple: 3.0

# How many whole maps, and how many of the best uniform K/V pairs, are measured before one is chosen.
ladder:
  maps: 5
  uniform: 4

# Held-out tasks. Set retrieval or short to null to leave it out; the card then says so.
tasks:
  # A fact hidden in a text of so many tokens must be found again.
  retrieval:
    lengths: [400, 800, 3200]
    items_per_length: 3
  # Short factual questions.
  short:
    items: 12
  # Loss of the running server's own answers on held-out text, over its top_k log-probabilities.
  served_kl:
    top_k: 200

# Seeds: the same plan on the same machine gives the same run.
seeds: {{corpora: 0, tasks: 1, bootstrap: 2, workload: 3}}

# Your requests: one JSON line each, arrival_s, input_tokens, output_tokens. limit: only the first so many; null is all.
# kv_memory_bytes: the memory that the server may fill with cache, the same for every arm.
workload:
  trace: {trace}
  format: kvassay
  limit: null
  warmup_requests: 1
  kv_memory_bytes: {kv_memory_bytes}

# What must hold for "approve". What is not shown does not pass; a looser gate is your decision, and the card shows every gate.
gates:
  # A task may lose at most this share of its answers (0.02 is two points), shown with 95 % confidence.
  quality_margin: 0.02
  # Loss through the served cache, nats per token: mean and 99th percentile.
  kl_mean_nats: 0.05
  kl_p99_nats: 0.5
  # The cache must shrink by at least this share.
  payload_saving: 0.25
  # 90th percentile of time to first token and of time per output token, against native.
  ttft_p90_ratio: 1.10
  tpot_p90_ratio: 1.10
  # Bad-day checks that must pass.
  checks: [exhaustion, fallback, restart, wrong_restart, abort]

# What is done when the cache is full: the next smaller measured map, then native with so many times the memory.
# A third kind: {{kind: context_cap, context_tokens: 4096}} refuses longer requests before they start.
fallback:
  - {{kind: smaller_map}}
  - {{kind: native, memory_factor: 4.0}}
"""
