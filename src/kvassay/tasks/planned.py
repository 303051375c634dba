"""The items that a plan asks for, and the chance level of each task."""

from __future__ import annotations

from kvassay.errors import BadInput
from kvassay.plan.schema import Plan
from kvassay.tasks import retrieval, short
from kvassay.tasks.item import Item
from kvassay.tasks.tokenizer import TaskTokenizer

CHANCES = {retrieval.NAME: retrieval.chance, short.NAME: short.chance}


def planned_items(plan: Plan, tokenizer: TaskTokenizer, max_tokens: int) -> dict[str, tuple[Item, ...]]:
    """Items by task, from the plan's sizes and seed; a task that is null in the plan is left out.

    max_tokens: the model's context limit. Raises BadInput when an item does not fit it.
    """
    seed, sizes = plan.seeds.tasks, plan.tasks
    items: dict[str, tuple[Item, ...]] = {}
    if sizes.retrieval is not None:
        items[retrieval.NAME] = retrieval.retrieval(tokenizer, seed, sizes.retrieval)
    if sizes.short is not None:
        items[short.NAME] = short.short(tokenizer, seed, sizes.short)
    for task, made in items.items():
        longest = max(item.needs_tokens for item in made)
        if longest > max_tokens:
            raise BadInput(f"tasks.{task}: an item takes {longest} tokens, the model holds {max_tokens}; lower its lengths")
    return items
