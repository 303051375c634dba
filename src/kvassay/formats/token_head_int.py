"""Symmetric integers with one FP32 scale per token and head."""

from kvassay.formats.law import FormatLaw

INT8_TOKEN_HEAD = FormatLaw("int8_token_head", 8, whole_head=True, scale_bytes=4, source="symmetric, FP32 absmax scale per token and head")
