"""What an engine makes of a cache: ranks, blocks, memory, and what its log says."""
