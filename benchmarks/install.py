"""Size and time of an installation of the wheels without extras, from a warm cache of packages.

The wheels of server and client are built and installed twice in empty environments by uv: the first time fills the
cache. The versions of their requirements are those of requirements/base.txt.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZE, WARM = 500, 30.0
# Only what the extras and tests need. LiteLLM itself brings boto3.
EXTRAS = ("authlib", "fastmcp", "mcp", "psycopg", "pyarrow", "storages", "websockets")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="winnow-bench-install-") as folder:
        # Of a copy of what git knows: building leaves files beside the sources.
        source = f"{folder}/source/"
        subprocess.run(["git", "checkout-index", "--all", f"--prefix={source}"], cwd=ROOT, check=True)  # noqa: S607
        uv("build", "--wheel", "--quiet", "--out-dir", folder, source)
        wheel = next(Path(folder).glob("*.whl"))
        uv("build", "--wheel", "--quiet", "--out-dir", folder, f"{source}winnow_client")
        install(Path(folder), Path(folder, "first"))
        seconds = install(Path(folder), Path(folder, "second"))
        packages = next(Path(folder, "second").glob("lib/*/site-packages"))
        size = megabytes(packages)
        found = [name for name in EXTRAS if (packages / name).exists()]
        print(f"size of the wheel            {wheel.stat().st_size / 1e6:6.1f} MB")
        print(f"size of the installation     {size:6.0f} MB  (asked {SIZE} MB)")
        print(f"time of a warm installation  {seconds:6.1f} s   (asked {WARM:.0f} s)")
        print(f"parts of extras in it        {', '.join(found) or 'none'}")
    return 0 if size <= SIZE and seconds <= WARM and not found else 1


def install(wheels: Path, environment: Path) -> float:
    """Install the wheels of a folder in a new environment; return the seconds, with those of making the environment."""
    began = time.monotonic()
    uv("venv", "--quiet", "--python", sys.executable, str(environment))
    versions = ("--constraint", str(ROOT / "requirements/base.txt"))
    uv(
        "pip",
        "install",
        "--quiet",
        "--python",
        str(environment / "bin/python"),
        *versions,
        *map(str, wheels.glob("*.whl")),
    )
    return time.monotonic() - began


def uv(*words: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name("uv")), *words], cwd=ROOT, check=True)


def megabytes(folder: Path) -> float:
    """Return the space that the files use on the disk; a hard link counts once."""
    sizes = {}
    for path, _, files in os.walk(folder):
        for name in files:
            status = Path(path, name).lstat()
            sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
