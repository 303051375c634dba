"""The version of this tool, in one place."""

TOOL_VERSION = "0.1.0"
