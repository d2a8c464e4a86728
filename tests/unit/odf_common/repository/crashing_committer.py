"""A process that appends a block to a dataset and is killed on its way.

Usage: crashing_committer.py ROOT CATALOG_URL POINT, with POINT the dotted name of a function that it does not survive.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any
from unittest import mock

from odf_common.catalog.catalog import Catalog
from odf_common.repository.repository import Repository
from tests.unit.odf_common.repository.chains import an_id, append


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    root, catalog_url, point = sys.argv[1:]
    repository = Repository.at(root, Catalog.open(catalog_url))
    with mock.patch(point, die):
        append(repository.open(an_id(1)), "the last word")
