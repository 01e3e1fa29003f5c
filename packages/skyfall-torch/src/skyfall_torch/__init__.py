"""Torch backends for skyfall-crl."""
