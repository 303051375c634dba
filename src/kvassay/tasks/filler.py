"""Plain prose made in code: sentences that hold no number and no code word, so that a needle stands out by content alone."""

from __future__ import annotations

from random import Random

WHO = (
    "The gardener", "A young teacher", "The old sailor", "My neighbour", "The baker", "A quiet student", "The farmer",
    "The librarian", "A tired driver", "The painter", "Her cousin", "The tailor",
)  # fmt: skip
DID = (
    "walked slowly past", "looked for a while at", "talked with a friend about", "wrote a short note about", "took a photograph of",
    "told the children about", "often thought of", "spent the morning near", "made a drawing of", "heard a story about",
)  # fmt: skip
WHAT = (
    "the stone bridge", "the green hill", "the market square", "the wooden boat", "the long street", "the village school",
    "the orchard", "the railway station", "the small church", "the harbour wall", "the old mill", "the town library",
)  # fmt: skip
WHEN = (
    "before the rain came.", "on a warm afternoon.", "while the wind was low.", "as the sun went down.", "during the holidays.",
    "early in the spring.", "and then went home.", "and nobody noticed.", "although it was late.", "without saying a word.",
)  # fmt: skip


def sentence(random: Random) -> str:
    """One sentence of 10 to 16 words."""
    return " ".join((random.choice(WHO), random.choice(DID), random.choice(WHAT), random.choice(WHEN)))
