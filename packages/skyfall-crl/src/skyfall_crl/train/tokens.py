"""Which tokens of a response carry the gradient. Re-exports `skyfall_torch.tokens`."""

try:
    from skyfall_torch.tokens import ActionTokens, action_token_start
except ImportError as error:
    raise ImportError("skyfall_crl.train.tokens needs: pip install 'skyfall-crl[torch]'") from error

__all__ = ["ActionTokens", "action_token_start"]
