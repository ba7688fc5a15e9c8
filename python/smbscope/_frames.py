"""Data frames of tables. Libraries are imported only when a data frame is asked for."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Protocol

    import pandas as pd
    import polars as pl

    class ArrowStream(Protocol):
        """A table that other libraries import through Arrow's PyCapsule interface."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def to_pandas(table: ArrowStream) -> pd.DataFrame:
    """Return a pandas DataFrame. Integers and truth values keep their types next to missing values."""
    pandas: Any = _library("pandas", "to_pandas", "pandas pyarrow")
    arrow: Any = _library("pyarrow", "to_pandas", "pandas pyarrow")
    types = {
        arrow.bool_(): pandas.BooleanDtype(),
        arrow.int64(): pandas.Int64Dtype(),
        arrow.uint64(): pandas.UInt64Dtype(),
        arrow.uint32(): pandas.UInt32Dtype(),
        arrow.uint16(): pandas.UInt16Dtype(),
    }
    frame: pd.DataFrame = arrow.table(table).to_pandas(types_mapper=types.get)
    return frame


def to_polars(table: ArrowStream) -> pl.DataFrame:
    """Return a Polars DataFrame."""
    polars: Any = _library("polars", "to_polars", "polars")
    frame: pl.DataFrame = polars.DataFrame(table)
    return frame


def _library(name: str, function: str, packages: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        text = f"{function}() needs {name}: pip install {packages}"
        raise ModuleNotFoundError(text, name=name) from None
