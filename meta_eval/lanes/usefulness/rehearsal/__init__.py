"""A rehearsal: a whole study on invented packets, with people and arms who follow stated rules.

Everything in it is invented and labelled so. It runs through the very gates of a real study and can end `rehearsed`,
never `passed`.
"""
