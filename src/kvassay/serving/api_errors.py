"""Errors of the HTTP face, in the shape OpenAI clients read: {"error": {"message", "type", "param", "code"}}."""

from __future__ import annotations

from typing import Any

from kvassay.serving.protocol import DoesNotFit

MAX_MESSAGE_CHARS = 500


class ApiError(Exception):
    """An answer other than 200. `kind` is the error's "type"; `extra` joins the error object; `outcome` labels the metric."""

    def __init__(self, status: int, kind: str, message: str, outcome: str, **extra: Any) -> None:
        super().__init__(message)
        self.status, self.kind, self.outcome, self.extra = status, kind, outcome, extra

    def body(self) -> dict[str, Any]:
        return {"error": {"message": str(self)[:MAX_MESSAGE_CHARS], "type": self.kind, "param": None, "code": self.status} | self.extra}


def bad_request(message: str, status: int = 400) -> ApiError:
    return ApiError(status, "invalid_request_error", message, "bad_request")


def overloaded(max_waiting: int) -> ApiError:
    return ApiError(503, "overloaded_error", f"{max_waiting} requests wait already; this server runs one at a time", "overloaded")


def stopping() -> ApiError:
    return ApiError(503, "server_stopping", "the server is stopping", "cancelled")


def from_exception(error: BaseException) -> ApiError:
    """The answer for anything the backend raised. DoesNotFit tells needed and available tokens."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, DoesNotFit):
        counts = {"needed_tokens": error.needed_tokens, "available_tokens": error.available_tokens}
        return ApiError(400, "exceed_context_size_error", str(error), "does_not_fit", **counts)
    return ApiError(500, "engine_error", f"{type(error).__name__}: {error}", "failed")
