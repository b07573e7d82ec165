"""Object storage for tests: a local S3 server with one bucket, and the environment that leads to it."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest
from moto.server import ThreadedMotoServer

BUCKET = "evidence"
SECRET = "an-invented-secret-that-nothing-may-print"  # noqa: S105


@contextmanager
def s3_server() -> Iterator[str]:
    """A server of this process, and its endpoint; credentials and endpoint are in the environment meanwhile."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(endpoint).items():
            patch.setenv(name, value)
        forget_connections()
        # What a server holds is the process's own, and outlives it.
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")).close()  # noqa: S310
        file_system().mkdir(BUCKET)
        try:
            yield endpoint
        finally:
            server.stop()
            forget_connections()


def environment(endpoint: str) -> dict[str, str]:
    """What a process needs to find the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "AKIAINVENTED",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def forget_connections() -> None:
    """fsspec keeps a file system a set of options; another server needs another one."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    memory().store.clear()


def file_system() -> Any:
    return fsspec.filesystem("s3", use_listings_cache=False)


def memory() -> Any:
    return fsspec.filesystem("memory")
