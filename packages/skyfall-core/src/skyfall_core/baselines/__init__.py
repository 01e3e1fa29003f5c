"""Algorithms that need nothing but NumPy: two controls and one learner.

`random` and `frozen` say what a score is worth; `actor-critic` is the smallest learner that adapts.
"""
