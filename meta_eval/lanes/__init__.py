"""WHAT IS MEASURED: one folder a lane, one file an artifact. A lane never imports another."""
