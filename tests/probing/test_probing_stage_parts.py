"""From findings to an arm's probe, with clients that answer from memory."""

from __future__ import annotations

import asyncio
import math

import pytest

from kvassay.errors import EngineError
from kvassay.probing.ask import ask_clients
from kvassay.probing.observed import Expected
from kvassay.probing.stage import probed_arm, refused_arm
from kvassay.progress import Silent
from kvassay.records.export import ArmExport
from kvassay.records.kv_map import KVMap, MapLayer

SHA = "ab" * 32
DOCUMENTS = [[n, n + 1, n + 2, n + 3] for n in range(1, 21)]


class FakeServer:
    """Two tokens: the first has probability `p`. A request of other length rounds by `rounding`."""

    def __init__(self, p, layers, rounding=0.0, fails=False):
        self.p, self.rounding, self.fails, self.asked = p, rounding, fails, 0
        self.state = {"layers": layers, "map_digest": SHA, "bytes_per_token": 50.0, "capacity_tokens": 2000}

    async def prompt_logprobs(self, prompt, top_k):
        self.asked += 1
        if self.fails:
            raise EngineError("this server gives no prompt log-probabilities")
        p = self.p + (self.rounding if len(prompt) < 5 else 0)
        return [None, *[{0: math.log(p), 1: math.log(1 - p)}] * (len(prompt) - 1)]

    async def kv_state(self):
        return self.state


def kl(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


LAYERS = [{"index": 0, "k": "fp8_e4m3", "v": "fp8_e4m3"}]
MAP = KVMap(
    model=SHA, geometry_sha256=SHA, target="t", layers=(MapLayer(index=0, module="m", k="fp8_e4m3", v="fp8_e4m3"),),
    scales="cast", bits=8, bytes_per_token=50, digest=SHA,
)  # fmt: skip


def asked(**servers):
    return asyncio.run(ask_clients(servers, DOCUMENTS, 10, Silent()))


def native(**options):
    server = FakeServer(0.6, [{"index": 0, "k": "native", "v": "native"}], **options)
    server.state |= {"bytes_per_token": 100.0, "capacity_tokens": 1000}
    return server


def test_an_arm_that_loses_what_was_predicted_conforms():
    findings = asked(native=native(rounding=0.005), map=FakeServer(0.5, LAYERS))
    expected = Expected(True, 50, 2.0, (kl(0.6, 0.5),) * 20)
    found = probed_arm("map", MAP, expected, findings, 0, "reference")
    floor = kl(0.6, 0.605)
    assert found.verdict == "conforms"
    assert found.explained_by == "reference"
    assert found.served_kl_nats == pytest.approx(kl(0.6, 0.5), abs=1e-5)
    assert found.ratio == pytest.approx(1 - floor / kl(0.6, 0.5), abs=1e-3)
    assert (found.capacity_ratio, found.capacity_tokens, found.bytes_per_token_measured, found.documents) == (2.0, 2000, 50.0, 20)
    assert found.formats_match is True


def test_a_server_that_ignores_its_map_is_not_engaged():
    findings = asked(native=native(), map=FakeServer(0.6, [{"index": 0, "k": "native", "v": "native"}]))
    found = probed_arm("map", MAP, Expected(True, 50, 2.0, (0.02,) * 20), findings, 0, "reference")
    assert (found.verdict, found.formats_match, found.explained_by) == ("not_engaged", False, None)
    assert found.served_kl_nats == 0.0


def test_an_arm_without_log_probabilities_is_unknown_and_asked_once():
    server = FakeServer(0.6, LAYERS, fails=True)
    findings = asked(native=native(), map=server)
    found = probed_arm("map", MAP, Expected(True, 50, 2.0, (0.02,) * 20), findings, 0, "reference")
    assert (found.verdict, found.served_kl_nats, found.ratio) == ("unknown", None, None)
    assert "no prompt log-probabilities" in found.served_kl_nats_reason
    assert server.asked == 1


def test_native_itself_conforms_and_states_no_loss():
    the_map = MAP.model_copy(update={"layers": (MapLayer(index=0, module="m", k="native", v="native"),)})
    findings = asked(native=native())
    found = probed_arm("native", the_map, Expected(False, 100, 1.0, None), findings, 0, "reference")
    assert (found.verdict, found.served_kl_nats, found.explained_by, found.capacity_ratio) == ("conforms", None, None, 1.0)


def test_without_native_there_is_no_baseline():
    with pytest.raises(EngineError):
        asked(native=native(fails=True), map=FakeServer(0.5, LAYERS))


def test_an_arm_that_did_not_start_is_refused_with_its_reason():
    arm = ArmExport(deployment="supported", reasons=(), folder="x", command=("x",), map_digest=SHA, bits=8, bytes_per_token=50)
    found = refused_arm(arm, Expected(True, 50, 2.0, (0.02, 0.04)), "out of memory")
    assert (found.verdict, found.reasons, found.predicted_kl_nats) == ("refused", ("out of memory",), pytest.approx(0.03))
    assert found.served_kl_nats is None
    assert found.served_kl_nats_reason
