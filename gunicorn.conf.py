"""gunicorn finds this file by its name. Sizes come from the environment."""

import os
from pathlib import Path

from config import env

bind = f"{env.text('BIND', '127.0.0.1')}:{env.number('PORT', 8000, low=1, high=65535)}"
workers = env.number("WEB_PROCESSES", min(4, (os.cpu_count() or 1) + 1), low=1, high=256)
threads = env.number("WEB_THREADS", 4, low=1, high=256)
worker_class = "gthread"
# In memory: heartbeat files on a slow disk would block the workers.
worker_tmp_dir = "/dev/shm"  # noqa: S108
# Long enough for an upload of MAX_UPLOAD_MB over a slow connection.
timeout = 300
graceful_timeout = 30
max_requests = 20_000
max_requests_jitter = 2_000
accesslog = "-"
access_log_format = "%(t)s %(m)s %(U)s %(s)s %(b)s B %(M)s ms"
control_socket_disable = True


def on_starting(server: object) -> None:
    """Delete the metrics of the previous start."""
    folder = Path(env.text("PROMETHEUS_MULTIPROC_DIR", str(Path(env.text("WINNOW_DATA", "data")) / "metrics")))
    for file in folder.glob("*.db"):
        file.unlink(missing_ok=True)
