"""The sessions lane: did an agent session follow its process?

The session process rubric: two ledgers in, a verdict a dimension out, under a frozen rubric, with no global score.
"""
