"""What a model's cache holds: a config.json or a GGUF header becomes layers and bytes."""
