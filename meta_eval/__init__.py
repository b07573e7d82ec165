"""meta_eval: evidence that an AI feature works, which a stranger can recheck."""
