"""A language model as a policy. Re-exports `skyfall_torch.policy`."""

try:
    from skyfall_torch.policy import LanguagePolicy, SamplingConfig, ValueHead, ValuePosition, language_policy
except ImportError as error:
    raise ImportError("skyfall_crl.train.policy needs: pip install 'skyfall-crl[torch]'") from error

__all__ = ["LanguagePolicy", "SamplingConfig", "ValueHead", "ValuePosition", "language_policy"]
