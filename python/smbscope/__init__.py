"""See what an SMB file server makes its users wait for, and why.

    import smbscope

    analysis = smbscope.analyze("capture.pcapng")
    print(analysis.to_text())

Tables go to pyarrow, Polars, pandas and DuckDB through Arrow's PyCapsule interface; none of them is needed.
"""

from smbscope._api import Bench, Comparison, Study, analyze, bench, compare, study
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
    "RunError",
    "SmbscopeError",
    "Study",
    "Table",
    "__version__",
    "analyze",
    "bench",
    "compare",
    "study",
]
