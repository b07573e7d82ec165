"""The golden gate: did this change of an answerer break what worked?

120 prompts over a small local collection, each with the answer that its records give. The verdict is of regression and
of nothing else: it can never stand in for evidence of production.
"""
