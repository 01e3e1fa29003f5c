"""Export bundles: a trained policy in a folder that acts without its environment.

A bundle holds the run's document, the spaces, where and with what it was made, the weights and, where
there is one, the scorecard, each vouched for by a manifest.
"""

from skyfall_core.bundle.finished import export_run
from skyfall_core.bundle.loading import Bundle, load_bundle
from skyfall_core.bundle.writing import check_export, export_bundle

__all__ = ["Bundle", "check_export", "export_bundle", "export_run", "load_bundle"]
