"""The umbrella of skyfall-crl: documented import paths, nothing else."""
