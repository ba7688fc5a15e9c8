"""See what an SMB file server makes its users wait for, and why.

    >>> import smbscope
    >>> analysis = smbscope.analyze("tests/data/demo-slow-server.pcap.zst")
    >>> [answer] = analysis.answer.to_pylist()
    >>> answer["culprit"]
    'server'
    >>> frame = analysis.groups.to_polars()
    >>> frame.filter(frame["group"] == "Open/Close")["count"].to_list()
    [216]

Tables also go to pandas (`to_pandas`), pyarrow, DuckDB and others through Arrow's PyCapsule interface. None of these
libraries is needed, except by the method that returns its data frame.
"""

from smbscope._api import Bench, Comparison, Prediction, Study, analyze, bench, compare, predict, study
from smbscope._notebook import Page
from smbscope._smbscope import (
    Analysis,
    ArgumentError,
    Batches,
    CaptureError,
    Document,
    Exchanges,
    LimitError,
    RunError,
    SmbscopeError,
    Table,
    __version__,
)

__all__ = [
    "Analysis",
    "ArgumentError",
    "Batches",
    "Bench",
    "CaptureError",
    "Comparison",
    "Document",
    "Exchanges",
    "LimitError",
    "Page",
    "Prediction",
    "RunError",
    "SmbscopeError",
    "Study",
    "Table",
    "__version__",
    "analyze",
    "bench",
    "compare",
    "predict",
    "study",
]
