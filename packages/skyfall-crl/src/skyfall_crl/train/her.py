"""Hindsight replay. Re-exports `skyfall_torch.her`."""

try:
    from skyfall_torch.her import HERBuffer, RelabelStrategy, relabel_episode
except ImportError as error:
    raise ImportError("skyfall_crl.train.her needs: pip install 'skyfall-crl[torch]'") from error

__all__ = ["HERBuffer", "RelabelStrategy", "relabel_episode"]
