"""The demo: what `make demo` shows is true."""

import os
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def test_the_first_workload_runs_twice():
    done = subprocess.run([os.path.join(ROOT, "tests", "demo", "run")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows ingested by this run: 2000\nrows in the table: 2000\n" in done.stdout
    assert "rows ingested by this run: 0\nrows in the table: 2000\n" in done.stdout
