"""The production lane: from a consented query log to metrics recomputed from reviewed traces.

Source: the production evaluation document. One file an artifact, in the order of the data.
"""
