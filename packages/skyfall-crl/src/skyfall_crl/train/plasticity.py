"""Effective rank of a policy's features. Re-exports `skyfall_core.plasticity`."""

from skyfall_core.plasticity import effective_rank_entropy, stable_rank

__all__ = ["effective_rank_entropy", "stable_rank"]
