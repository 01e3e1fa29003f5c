"""A report of many runs: one HTML file that opens from disk, and the same figures as files of their own.

Three steps that know nothing of each other's insides: `lives` reads and thins the runs, `figures` and
its neighbors say what there is to draw in the words of `scene`, and `drawing` (SVG) or `plots` (matplotlib)
draws it. `page` puts everything into one document.
"""
