"""`python -m skyfall_metrics`: the command line where no script is installed."""

from skyfall_metrics.cli import main

if __name__ == "__main__":
    main()
