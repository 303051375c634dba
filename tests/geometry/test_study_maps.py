"""The arithmetic of a study of mixed FP8 and NVFP4 caches of Qwen3-8B, as the maps in examples/qwen3-8b say it."""

import json
import runpy
from pathlib import Path

import pytest

from kvassay.cli import run_command
from kvassay.solving.kv_map import read_kv_map

EXAMPLE = Path(__file__).parents[2] / "examples" / "qwen3-8b"
ELEMENTS = 32_768 * 36 * 2 * 8 * 128
NVFP4_BITS = 4 + 8 / 16


def maps(count):
    return ["--map", str(EXAMPLE / f"map-{count}-fp8-keys.json")]


@pytest.fixture
def inspected(capsys):
    def run(*arguments):
        code = run_command(["inspect", str(EXAMPLE), "--context", "32768", *arguments])
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    return run


def mixed_bits(fp8_keys):
    """36 layers of V in NVFP4, K in FP8 in some of them."""
    return (36 * NVFP4_BITS + fp8_keys * 8 + (36 - fp8_keys) * NVFP4_BITS) / 72


@pytest.mark.parametrize(
    ("arguments", "bits", "gib", "saved"),
    [
        ([], 16, "4.50 GiB", None),
        (["--k", "fp8_e4m3", "--v", "fp8_e4m3"], 8, "2.25 GiB", "50.0%"),
        (["--k", "nvfp4", "--v", "nvfp4"], NVFP4_BITS, "1.27 GiB", "71.9%"),
        (maps(17), mixed_bits(17), "1.50 GiB", "66.7%"),
        (maps(26), mixed_bits(26), "1.62 GiB", "64.0%"),
    ],
    ids=["bf16", "fp8", "nvfp4", "17", "26"],
)
def test_figures_of_the_study(inspected, arguments, bits, gib, saved):
    document = json.loads(inspected(*arguments, "--json"))
    assert document["total_bytes"] == ELEMENTS * bits / 8
    text = inspected(*arguments)
    assert f"at 32,768 tokens one request holds {gib}" in text
    if saved is None:
        assert "bits_per_element" not in document
        assert "less than native" not in text
        return
    assert document["bits_per_element"] == pytest.approx(bits, abs=1e-12)
    assert document["saved_fraction"] == pytest.approx(1 - bits / 16, abs=1e-12)
    assert f"{saved} less than native (4.50 GiB)" in text


@pytest.mark.parametrize(("fp8_keys", "bits"), [(17, 5.326389), (26, 5.763889)])
def test_maps_say_their_own_bits(inspected, fp8_keys, bits):
    kv_map = read_kv_map(Path(maps(fp8_keys)[1]))
    assert round(kv_map.bits, 6) == bits
    assert f"{bits} bits per element" in inspected(*maps(fp8_keys))
    assert [layer.k for layer in kv_map.layers].count("fp8_e4m3") == fp8_keys
    assert {layer.v for layer in kv_map.layers} == {"nvfp4"}
    # 36 layers of 8 heads: 128 bytes for FP8, 64 + 8 for NVFP4.
    assert kv_map.bytes_per_token == 8 * (36 * 72 + fp8_keys * 128 + (36 - fp8_keys) * 72)


@pytest.mark.parametrize("fp8_keys", [17, 26])
def test_maps_are_marked_illustrative_and_belong_to_no_weights(fp8_keys):
    document = json.loads(Path(maps(fp8_keys)[1]).read_text())
    assert "illustrative" in document["provenance"]["chosen_from"]
    assert set(document["model"]) == {"0"}


def test_the_script_writes_the_shipped_maps(tmp_path):
    runpy.run_path(str(EXAMPLE / "make_maps.py"))["main"](tmp_path)
    for written in tmp_path.iterdir():
        assert written.read_text() == (EXAMPLE / written.name).read_text()
    assert len(list(tmp_path.iterdir())) == 2
