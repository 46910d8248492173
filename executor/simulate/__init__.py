"""`executor simulate`: whole federations in memory, and ways to learn compared in one table."""
