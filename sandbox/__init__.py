"""The sandbox engine: rooms in which model-written commands run, without Django. It is filled with the scenarios."""
