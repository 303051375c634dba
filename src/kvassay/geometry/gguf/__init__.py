"""GGUF headers, brought to the keys of a configuration."""
