"""The metrics, one file each: pure functions over a prepared stream, with typed results."""
