# Winnow: one image. Without a command a container is the whole product; a command makes it web, a worker or beat.
#
# BASE needs python3 (3.11 to 3.14) with venv and pip, nothing else; Debian's own python3 does. `make pin-images` looks
# its digest up again.
# With a private certificate authority: a BASE that has its bundle, and --build-arg PIP_CERT=/path/in/the/base.
# Plain Dockerfile syntax: it builds without BuildKit and fetches no syntax image.
ARG BASE=python:3.12-slim@sha256:229a2c5bfa27522db7815ea81f9bed70af17ccb9de9fc7ad142b1877b5830d36

FROM ${BASE} AS build
# Arguments, not ENV: only the installation needs them, and they must not be in the image.
ARG PIP_CERT
ARG PIP_INDEX_URL
WORKDIR /app
COPY requirements/base.txt requirements/telemetry.txt requirements/
RUN python3 -m venv /opt/venv \
    && for name in base telemetry; do \
        /opt/venv/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-input \
            --no-deps --require-hashes --requirement requirements/$name.txt || exit 1; done \
    && /opt/venv/bin/python -m pip uninstall --quiet --yes pip setuptools
ENV PATH=/opt/venv/bin:$PATH
COPY manage.py gunicorn.conf.py ./
COPY config config
COPY curation curation
COPY judging judging
COPY sandbox sandbox
COPY templates templates
COPY static static
COPY docs docs
COPY deploy deploy
COPY winnow winnow
COPY winnow_client winnow_client
# This step's data folder, with a generated SECRET_KEY, is not copied into the image.
RUN python -m compileall -q . \
    && WINNOW_DATA=/tmp/build STATIC_ROOT=/app/staticfiles python manage.py collectstatic --no-input --verbosity 0

FROM ${BASE}
RUN groupadd --gid 10001 winnow \
    && useradd --uid 10001 --gid winnow --no-create-home --home-dir /data --shell /usr/sbin/nologin winnow \
    && install --directory --owner winnow --group winnow --mode 0700 /data
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
# The volume is shared by all containers of an installation, so the first one makes their SECRET_KEY there.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    WINNOW_DATA=/data \
    STATIC_ROOT=/app/staticfiles \
    GENERATE_KEY=1 \
    BIND=0.0.0.0 \
    PORT=8000
WORKDIR /app
USER winnow
VOLUME /data
EXPOSE 8000
# Of containers that serve pages. compose.yaml has other checks for the workers.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["/app/deploy/web-answers"]
CMD ["python", "manage.py", "serve"]
