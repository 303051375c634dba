"""The decision: every gate must be met. One missed gate rejects; else one undecided gate abstains.

A missing figure is an undecided gate, so unknown, not_run and not_shown never turn into a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvassay.card.evidence import Case
from kvassay.card.gates_choice import choice_gates
from kvassay.card.gates_quality import quality_gates
from kvassay.card.gates_serving import serving_gates
from kvassay.records.card import Card, Gate, Verdict

GATES: tuple[Callable[[Case], list[Gate]], ...] = (choice_gates, quality_gates, serving_gates)

EXIT_CODES: dict[Verdict, int] = {"approve": 0, "reject": 1, "abstain": 3}


def judge(case: Case) -> tuple[Gate, ...]:
    """Every gate of the policy for one arm, in the order the card shows them."""
    return tuple(gate for gates in GATES for gate in gates(case))


def verdict_of(gates: Sequence[Gate]) -> Verdict:
    """Any missed gate: reject. Else any undecided gate, or no gate at all: abstain. Else approve."""
    outcomes = {gate.outcome for gate in gates}
    if "missed" in outcomes:
        return "reject"
    return "approve" if outcomes == {"met"} else "abstain"


def reasons_of(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Sentences of missed gates, then of undecided ones; for an approval, how many gates were met."""
    reasons = tuple(gate.sentence for outcome in ("missed", "undecided") for gate in gates if gate.outcome == outcome)
    return reasons or (f"all {len(gates)} gates are met",)


def check_decision(card: Card) -> int:
    """Exit code of `kvassay card --check`: 0 approve, 1 reject, 3 abstain."""
    return EXIT_CODES[card.decision.verdict]
