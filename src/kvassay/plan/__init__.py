"""The plan of a run: reading and checking it, pricing its budget, saying beforehand what it will cost."""

from kvassay.plan.load import load_plan
from kvassay.plan.resolve import RESOLVED_PLAN, load_resolved, plan_difference, save_resolved

__all__ = ["RESOLVED_PLAN", "load_plan", "load_resolved", "plan_difference", "save_resolved"]
