"""Answer bodies in OpenAI's forms, with vLLM's additions (token ids, prompt log-probabilities)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

from kvassay.serving.answering import Accepted, Delta, TokenLogprob
from kvassay.serving.requests import ChatRequest, CompletionRequest


class Bodies:
    """Bodies of one answer; all share its id and time."""

    def __init__(self, request: CompletionRequest | ChatRequest, model_name: str, accepted: Accepted) -> None:
        self.request, self.accepted = request, accepted
        self.chat = isinstance(request, ChatRequest)
        self._id = ("chatcmpl-" if self.chat else "cmpl-") + uuid.uuid4().hex
        self._common = {"created": int(time.time()), "model": model_name}
        self._text_offset = 0

    def whole(self, deltas: Sequence[Delta]) -> dict[str, Any]:
        """The answer to a request without streaming."""
        text = "".join(delta.text for delta in deltas)
        finish = deltas[-1].finish_reason if deltas else "length"
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "logprobs": self._logprobs(deltas)}
        choice |= {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        body: dict[str, Any] = {"choices": [choice], "usage": self._usage(len(deltas))}
        if self.request.return_token_ids:
            choice["token_ids"] = [delta.token_id for delta in deltas]
            (body if self.chat else choice)["prompt_token_ids"] = list(self.accepted.prompt)
        if self.accepted.prompt_logprobs is not None:
            choice["prompt_logprobs"] = self.accepted.prompt_logprobs
        return self._body("chat.completion" if self.chat else "text_completion", body)

    def chunk(self, delta: Delta, number: int) -> bytes:
        """The event of the number-th token (from 1)."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": delta.finish_reason, "logprobs": self._logprobs([delta])}
        choice |= {"delta": {"content": delta.text}} if self.chat else {"text": delta.text}
        body: dict[str, Any] = {"choices": [choice]}
        if self.request.return_token_ids:
            choice["token_ids"] = [delta.token_id]
            if number == 1 and not self.chat:
                choice["prompt_token_ids"] = list(self.accepted.prompt)
        return self._event(body, number)

    def role_chunk(self) -> bytes:
        """The first event of a chat stream, which says who speaks and carries no text."""
        body: dict[str, Any] = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
        if self.request.return_token_ids:
            body["prompt_token_ids"] = list(self.accepted.prompt)
        return self._event(body, 0)

    def usage_chunk(self, output_tokens: int) -> bytes:
        return event(self._body(self._chunk_object, {"choices": [], "usage": self._usage(output_tokens)}))

    @property
    def _chunk_object(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _event(self, body: dict[str, Any], output_tokens: int) -> bytes:
        options = self.request.stream_options
        if options.include_usage:
            body["usage"] = self._usage(output_tokens) if options.continuous_usage_stats else None
        return event(self._body(self._chunk_object, body))

    def _body(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"id": self._id, "object": kind, **self._common, **body}

    def _usage(self, output_tokens: int) -> dict[str, int]:
        prompt_tokens = len(self.accepted.prompt)
        return {"prompt_tokens": prompt_tokens, "completion_tokens": output_tokens, "total_tokens": prompt_tokens + output_tokens}

    def _logprobs(self, deltas: Sequence[Delta]) -> dict[str, Any] | None:
        known = [delta.logprob for delta in deltas if delta.logprob is not None]
        if not known:
            return None
        if self.chat:
            return {"content": [_chat_entry(one) for one in known]}
        offsets = []
        for one in known:
            offsets.append(self._text_offset)
            self._text_offset += len(one.token)
        return {
            "tokens": [one.token for one in known],
            "token_logprobs": [one.logprob for one in known],
            "top_logprobs": [dict(one.top) for one in known],
            "text_offset": offsets,
        }


def _chat_entry(one: TokenLogprob) -> dict[str, Any]:
    alternatives = [{"token": token, "logprob": logprob, "bytes": list(token.encode())} for token, logprob in one.top]
    return {"token": one.token, "logprob": one.logprob, "bytes": list(one.token.encode()), "top_logprobs": alternatives}


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body, separators=(",", ":"), allow_nan=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
