"""Analyse captures on a Ray cluster: `pip install smbscope[ray]`.

    from smbscope import cluster

    analysis = cluster.analyze("/captures/*.pcapng", address="auto")

Each file is divided by pairs of hosts (map), the pieces of each part are followed through all files (reduce), and the
parts merge to the report of one process. Files may be local, shared, or in object stores, through `pyarrow.fs`.
"""

from smbscope.cluster._job import Progress, analyze

__all__ = ["Progress", "analyze"]
