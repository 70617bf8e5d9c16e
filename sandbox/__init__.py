"""The sandbox engine, without Django. Commands written by models run in sessions.

Start at `protocol`: the types that a session takes and returns. `bubblewrap/` and `docker/` are the two backends behind
it. `agent/` plays in sessions: the agent loop, the reference gate, replay, and episodes on other servers.
"""
