"""`executor process`: agree on a process, follow it, change it, end it."""
