"""Ways to run the cells of a sweep: plugins of the group `skyfall.executors`.

`base` holds the contract, `cell` runs one cell in whatever process it is in, and `local`, `ray` and
`slurm` bring cells to processes. Importing this package imports none of them.
"""
