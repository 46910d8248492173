"""The paper's experiment and its extensions: data by hash, split, metrics, statistics, tables, figures."""
