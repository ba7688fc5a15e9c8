"""Analyse captures, and load servers, on a Ray cluster: `pip install smbscope[ray]`.

    from smbscope import cluster

    analysis = cluster.analyze("/captures/*.pcapng", address="auto")
    run = cluster.bench("smb://ann@files/projects", address="auto", users="100,1000")

To analyse, each file is divided by pairs of hosts (map), the pieces of each part are followed through all files
(reduce), and the parts merge to the report of one process. Files may be local, shared, or in object stores, through
`pyarrow.fs`. To load, each host runs a load generator; users are divided among them, and what they count is merged as
it comes.
"""

from smbscope.cluster._job import Progress, analyze
from smbscope.cluster._load import bench

__all__ = ["Progress", "analyze", "bench"]
