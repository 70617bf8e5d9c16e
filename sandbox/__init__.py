"""The sandbox engine, without Django: rooms in which model-written commands run, and the agent loop in them.

Begin at `protocol`: what a session takes and gives. `bubblewrap/` and `docker/` are the two backends behind it.
"""
