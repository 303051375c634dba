"""Request shapes: trace readers, and prompts of exact length made from them."""

from kvassay.workload.prompts import prompt_tokens, prompts_digest
from kvassay.workload.request import Request, SharedBlock
from kvassay.workload.trace import READERS, BadLine, Trace, read_trace

__all__ = ["READERS", "BadLine", "Request", "SharedBlock", "Trace", "prompt_tokens", "prompts_digest", "read_trace"]
