"""Request bodies of the HTTP face: what is understood, what is refused, and the limits.

A field that would change the answer and that this server does not honour is refused when it is set to anything but its neutral
value; fields nobody here knows are ignored, as other OpenAI-compatible servers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError, field_validator

from kvassay.errors import BadInput
from kvassay.serving.api_errors import bad_request
from kvassay.serving.protocol import GenerateParams
from kvassay.store import first_problem, parse_json


@dataclass(frozen=True)
class Limits:
    """Bounds of the face. Sizes of an accepted request are further bounded by the backend's `check_fits`.

    finish_within_s, abort_within_s: after SIGTERM, how long the running request may go on, and then how long its end may take.
    """

    max_body_bytes: int = 16 * 2**20
    body_timeout_s: float = 30.0
    max_waiting: int = 64
    finish_within_s: float = 2.0
    abort_within_s: float = 2.0


MAX_TOKENS = 2**20
MAX_TOP_LOGPROBS = 20
MAX_PROMPT_LOGPROBS = 1024
DEFAULT_COMPLETION_TOKENS = 16
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "min_tokens": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "tools": ([],),
    "response_format": ({"type": "text"},),
    "use_beam_search": (False,),
}
NEUTRAL_WHEN_SAMPLING: dict[str, tuple[Any, ...]] = {"top_p": (1,), "top_k": (-1, 0), "min_p": (0,)}

TokenId = Annotated[StrictInt, Field(ge=0, lt=2**31)]
StopString = Annotated[str, Field(min_length=1, max_length=256)]


class StreamOptions(BaseModel):
    include_usage: StrictBool = False
    continuous_usage_stats: StrictBool = False


class _Request(BaseModel):
    model_config = ConfigDict(extra="allow")

    model: str | None = None
    temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 1.0
    seed: Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: Annotated[tuple[StopString, ...], Field(max_length=16)] = ()
    stream: StrictBool = False
    stream_options: StreamOptions = StreamOptions()
    ignore_eos: StrictBool = False
    return_token_ids: StrictBool = False
    return_tokens_as_token_ids: StrictBool = False

    @field_validator(
        "temperature", "stream", "stream_options", "ignore_eos", "return_token_ids", "return_tokens_as_token_ids", mode="before"
    )
    @classmethod
    def _null_is_default(cls, value: Any, info: Any) -> Any:
        return cls.model_fields[info.field_name].default if value is None else value

    @field_validator("stop", mode="before")
    @classmethod
    def _stop_strings(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else () if value is None else value


class CompletionRequest(_Request):
    """/v1/completions. `logprobs`: alternatives per generated token; `prompt_logprobs`: alternatives per prompt token."""

    prompt: str | tuple[TokenId, ...]
    max_tokens: Annotated[StrictInt, Field(ge=0, le=MAX_TOKENS)] | None = None
    logprobs: Annotated[StrictInt, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    prompt_logprobs: Annotated[StrictInt, Field(ge=0, le=MAX_PROMPT_LOGPROBS)] | None = None

    @field_validator("prompt", mode="before")
    @classmethod
    def _one_prompt(cls, value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], str | list):
            if len(value) > 1:
                raise ValueError(f"{len(value)} prompts in one request; this server takes one")
            value = value[0]
        if not isinstance(value, str | list) or not value:
            raise ValueError("give a text or a list of token ids, not empty")
        return value


class ChatRequest(_Request):
    """/v1/chat/completions. `max_completion_tokens` is the newer name of `max_tokens`; with neither, the answer may fill the cache."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=4096)]
    max_tokens: Annotated[StrictInt, Field(ge=1, le=MAX_TOKENS)] | None = None
    max_completion_tokens: Annotated[StrictInt, Field(ge=1, le=MAX_TOKENS)] | None = None
    logprobs: StrictBool | None = None
    top_logprobs: Annotated[StrictInt, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None

    @field_validator("messages")
    @classmethod
    def _text_messages(cls, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**message, "content": _text_content(message)} for message in value]


def _text_content(message: dict[str, Any]) -> str:
    """The text of a message, whose content is a text or a list of text parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    if not isinstance(message.get("role"), str) or not all(isinstance(text, str) for text in texts):
        raise ValueError('every message needs a "role" and a "content", both text')
    return "".join(text for text in texts if text is not None)


R = TypeVar("R", bound=_Request)


def read_request(kind: type[R], body: bytes, model_name: str) -> R:
    """The validated request. Raises ApiError 400 with one sentence, 404 for another model's name."""
    try:
        document = parse_json(body, "request body")
    except BadInput as error:
        raise bad_request(str(error)) from error
    if not isinstance(document, dict):
        raise bad_request("request body: a JSON object is needed")
    try:
        request = kind.model_validate(document)
    except ValidationError as error:
        raise bad_request(first_problem(error)) from error
    if request.model not in (None, model_name):
        raise bad_request(f"model {request.model[:200]!r} is not served here; {model_name!r} is", status=404)
    neutral = NEUTRAL | (NEUTRAL_WHEN_SAMPLING if request.temperature > 0 else {})
    for name, values in neutral.items():
        if document.get(name) is not None and document[name] not in values:
            raise bad_request(f"{name}: this server supports only {values[0]!r}")
    return request


def parameters(request: CompletionRequest | ChatRequest, max_tokens: int) -> GenerateParams:
    top = (request.top_logprobs if isinstance(request, ChatRequest) else request.logprobs) or 0
    return GenerateParams(max_tokens, request.temperature, request.seed, request.stop, request.ignore_eos, top)


def wants_logprobs(request: CompletionRequest | ChatRequest) -> bool:
    return bool(request.logprobs) if isinstance(request, ChatRequest) else request.logprobs is not None
