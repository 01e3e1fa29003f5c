"""Score recorded continual-learning runs. Installs alone: numpy, msgspec, typer."""
