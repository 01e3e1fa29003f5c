"""MORPHEUS worlds and several persistent worlds at once, for skyfall-crl."""
