"""An example of meta_eval on more than one machine: docs/deployment.md. It is no part of the package."""
