"""Trackers: where a run's window metrics and shifts go besides its trace."""
