"""Several persistent worlds, stepped at once. Re-exports `skyfall_morpheus.vector`."""

try:
    from skyfall_morpheus.vector import OnError, PersistentVectorEnv
except ImportError as error:
    raise ImportError("skyfall_crl.env.vector needs: pip install 'skyfall-crl[morpheus]'") from error

__all__ = ["OnError", "PersistentVectorEnv"]
