"""The paper's experiment and what extends it: hostile members, other data and ways to learn, compared.

All in memory, on the algorithm that runs in the containers; results are values, Markdown, CSV and figures.
The executor has the command line. Read data, split, engine, then paper, adversary, methods and comparison.
"""
