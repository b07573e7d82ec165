"""Rehearsals: a whole round on invented data, with the people's parts played by stated rules.

Everything made here is invented and lies under reserved names, so a rehearsal can end `rehearsed` and never
`passed`. `invented_log` writes the query log, `people` plays whoever attests, labels, runs and reviews, and `faults`
breaks one named rule or misses one named threshold, for tests and documents.
"""
