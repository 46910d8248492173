"""The agreement: what the organisations of a process decide together before and while it runs."""
