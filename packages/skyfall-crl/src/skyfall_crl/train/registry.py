"""Algorithms by name. Re-exports `skyfall_core.registry`."""

from skyfall_core.registry import available, create, is_registered, register, resolve

__all__ = ["available", "create", "is_registered", "register", "resolve"]
