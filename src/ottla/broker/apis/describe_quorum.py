"""DescribeQuorum (55): who leads the metadata log, who votes, and how far each has come.

The only partition there is to ask for is `__cluster_metadata-0`. v1 brought the times of the last fetch, v2 directory
ids and where the voters listen (KIP-853).
"""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.broker.slicing import Cut, in_slices
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

API = Api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ask_quorum,
    long=in_slices(Cut("topics.partitions", "topics.partitions")),
)
