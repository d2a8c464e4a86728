"""pyarrow imports pandas with the first list that it is given, which takes longer than most commands do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    """Says that pandas is not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for all others: the next finder is asked."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out of the command line", name=fullname)
        return None


_FINDER = _WithoutPandas()


def leave_out_pandas() -> None:
    """Let nothing of this process import it from now on."""
    sys.meta_path.insert(0, _FINDER)


def let_pandas_in() -> None:
    """For what works with it, as Spark does."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
