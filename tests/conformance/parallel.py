#!/usr/bin/env python3
"""Runs conformance cases on one fresh server per core and compares them with what real Spark printed.

  parallel.py --server build/release/fleuve --must passing.txt      the cases of the list; all must pass
  parallel.py --server ... [NAME ...]                               cases whose path holds a NAME (default: every case)

Each server has a warehouse of its own; the cases are dealt out as servers become free. A case that failed is run once more
at the end, alone on a fresh server, and named if it passes then: some wait for the clock, and a loaded machine is late.
--save-passed FILE writes the names of the cases that passed. The last line says N passed, N failed.
"""

import argparse
import difflib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run  # noqa: E402


class Server:
    """One fleuve server on a free port with a warehouse of its own."""

    def __init__(self, binary):
        self.folder = tempfile.mkdtemp(prefix="conformance-server-")
        self.log = open(os.path.join(self.folder, "log"), "w")
        self.process = subprocess.Popen(
            [binary, "server", "--port", "0", "--warehouse", os.path.join(self.folder, "warehouse")],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={"FLEUVE_PYTHON": sys.executable, **os.environ},
        )
        line = self.process.stdout.readline()
        found = re.search(r"listening on (sc://\S+)", line)
        if not found:
            raise RuntimeError("the server did not start: " + open(self.log.name).read()[-2000:])
        self.url = found[1]

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--server", required=True)
    parser.add_argument("--must", help="run exactly the cases of this file")
    parser.add_argument("--save-passed")
    parser.add_argument("--servers", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=90)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("PIPELINES_CLI", os.path.abspath(options.server) + " pipelines")
    os.environ.setdefault("FLEUVE_PYTHON", sys.executable)
    import pyspark.sql.connect.session  # noqa: F401  (once, before the cases' processes are forked)

    cases = run.find_cases([os.path.join(HERE, "cases")], options.names)
    if options.must:
        wanted = {line.strip() for line in open(options.must) if line.strip()}
        missing = wanted - {case for case, _ in cases}
        if missing and not options.names:
            sys.exit("%s names cases that do not exist: %s" % (options.must, ", ".join(sorted(missing))))
        cases = [c for c in cases if c[0] in wanted]
    needs = [(c, p) for c, p in cases if run.header(open(p).read(), "needs") == "kafka"]
    if not os.environ.get("KAFKA_BOOTSTRAP"):
        cases = [c for c in cases if c not in needs]
    lock = threading.Lock()
    queue = list(cases)
    passed, failed, doubtful = [], [], []

    def compare(case, path, mine):
        """The case's output and what it should be."""
        got = run.run_isolated(case, path, mine)
        expected_path = os.path.splitext(path)[0] + ".out"
        return got, open(expected_path).read() if os.path.exists(expected_path) else "(no expected output)\n"

    def report(case, seconds, expected, got):
        print("FAILED %s (%.1f s)" % (case, seconds))
        if not options.quiet:
            diff = difflib.unified_diff(expected.splitlines(), got.splitlines(), "expected", "got", n=1, lineterm="")
            print("\n".join("    " + line for line in list(diff)[:40]))
        sys.stdout.flush()

    def work():
        server = Server(options.server)
        mine = argparse.Namespace(remote=server.url, classic=False, jars=None, timeout=options.timeout)
        while True:
            with lock:
                if not queue:
                    break
                case, path = queue.pop(0)
            began = time.time()
            got, expected = compare(case, path, mine)
            with lock:
                if got == expected:
                    passed.append(case)
                elif options.must:
                    doubtful.append((case, path))
                else:
                    failed.append(case)
                    report(case, time.time() - began, expected, got)
            if not server.alive():
                with lock:
                    print("the server died during %s (exit code %s); its log ends with:" % (case, server.process.returncode))
                    print(open(server.log.name).read()[-2000:])
                server.stop()
                server = Server(options.server)
                mine.remote = server.url
        server.stop()

    threads = [threading.Thread(target=work) for _ in range(options.servers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for case, path in sorted(doubtful):
        server = Server(options.server)
        began = time.time()
        got, expected = compare(
            case, path, argparse.Namespace(remote=server.url, classic=False, jars=None, timeout=options.timeout)
        )
        server.stop()
        if got == expected:
            passed.append(case)
            print("passed on its own, not beside others: %s" % case)
        else:
            failed.append(case)
            report(case, time.time() - began, expected, got)
    if options.save_passed:
        open(options.save_passed, "w").write("".join(c + "\n" for c in sorted(passed)))
    for area in sorted({c.split(os.sep)[0] for c in passed + failed}):
        good = sum(c.split(os.sep)[0] == area for c in passed)
        print("%-20s %d of %d" % (area, good, good + sum(c.split(os.sep)[0] == area for c in failed)))
    print("%d passed, %d failed" % (len(passed), len(failed)))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
