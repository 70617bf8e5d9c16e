"""Throughput beside the machine's best possible figure. Run as modules: `python -m benchmarks.samples`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
