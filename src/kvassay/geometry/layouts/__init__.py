"""From keys to layers: which layer keeps what, in which shape."""
