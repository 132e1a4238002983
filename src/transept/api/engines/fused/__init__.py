"""Search with all of it on a GPU: one CUDA graph a step, and no waiting for the host."""
