"""Names of the arms of an evaluation, and which questions each of them gets."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.tasks.item import Item

NATIVE = "native"
CANARY = "canary"
# Native asked a second time: what differs between the two is noise.
NOISE = "native_again"


def questions(arm: str, items: Sequence[Item]) -> tuple[Item, ...]:
    """The items of one task that `arm` answers, in order.

    Every arm answers all, except two that only guard the harness: the canary leaves out the longest length of a task that has
    several, and the noise arm takes the shortest alone. They show what they are for without the cost of long prompts.
    """
    lengths = sorted({len(item.prompt): item.length for item in items}.items())
    labels = list(dict.fromkeys(label for _, label in lengths))
    if arm == NOISE:
        labels = labels[:1]
    elif arm == CANARY and len(labels) > 1:
        labels = labels[:-1]
    return tuple(item for item in items if item.length in labels)
