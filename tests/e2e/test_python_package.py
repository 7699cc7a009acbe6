"""The Python package of python/fleuve on the binary under test: session(), display()."""

import json
import os
import subprocess
import sys
import time

from conftest import FLEUVE

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def start(program, folder, **environment):
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(program)
    return subprocess.Popen(
        [sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={
            **{k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "FLEUVE_REMOTE")},
            "PYTHONPATH": os.path.join(ROOT, "python"),
            "FLEUVE_BINARY": FLEUVE,
            **environment,
        },
    )


def run(program, folder, **environment):
    process = start(program, folder, **environment)
    try:
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


def test_a_session_starts_a_server_and_ends_it(folder):
    done = run(
        """
import fleuve, fleuve.server
spark = fleuve.session(warehouse="tables", conf={"spark.sql.session.timeZone": "Europe/Paris"})
fleuve.display(spark.range(2))
assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Paris"
assert fleuve.session().session_id == spark.session_id
try:
    fleuve.session(warehouse="others")
except ValueError as error:
    print(error)
print("pid", fleuve.server._own[0].pid)
""",
        folder,
    )
    assert done.returncode == 0, done.stderr
    assert "| id|\n+---+\n|  0|\n|  1|\n" in done.stdout
    assert "`warehouse` belongs to the first call" in done.stdout
    pid = done.stdout.split("pid ")[1].strip()
    assert not os.path.exists("/proc/" + pid)


def test_display_of_a_stream_is_a_query_with_a_table(folder):
    os.mkdir(os.path.join(folder, "in"))
    with open(os.path.join(folder, "in", "a.json"), "w") as file:
        file.write("".join(json.dumps({"n": n}) + "\n" for n in range(5)))
    done = run(
        """
import fleuve
spark = fleuve.session(warehouse="tables")
frame = spark.readStream.schema("n INT").json("in")
query = fleuve.display(frame, name="shown", trigger={"availableNow": True})
query.awaitTermination()
print(spark.table("shown").agg({"n": "sum"}).collect())
""",
        folder,
    )
    assert done.returncode == 0, done.stderr
    assert "[Row(sum(n)=10)]" in done.stdout


def test_what_a_console_stream_prints_is_the_programs_output(folder):
    done = run(
        """
import fleuve
spark = fleuve.session(warehouse="tables")
spark.range(3000).selectExpr("id", "repeat('x', 100) AS text").write.parquet("in")  # more than a pipe holds
frame = spark.readStream.schema("id BIGINT, text STRING").parquet("in")
query = frame.writeStream.format("console").option("numRows", 3000).option("truncate", False)
query.trigger(availableNow=True).start().awaitTermination()
""",
        folder,
    )
    assert done.returncode == 0, done.stderr
    assert "Batch: 0" in done.stdout
    assert done.stdout.count("x" * 100) == 3000


def test_a_killed_program_leaves_no_server(folder):
    program = start(
        """
import time
import fleuve, fleuve.server
fleuve.session(warehouse="tables").range(1).collect()
print(fleuve.server._own[0].pid, flush=True)
time.sleep(60)
""",
        folder,
    )
    try:
        pid = program.stdout.readline().strip()
        assert is_running(pid)
    finally:
        program.kill()
        program.communicate()
    deadline = time.time() + 10
    while is_running(pid):
        assert time.time() < deadline, "the server runs on without its program"
        time.sleep(0.1)


def test_a_binary_that_is_no_engine_is_ended(folder):
    path = os.path.join(folder, "other")
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho $$ >pid; echo hello; exec sleep 60\n")
    os.chmod(path, 0o755)
    done = run("import fleuve\nfleuve.session()\n", folder, FLEUVE_BINARY=path)
    assert "RuntimeError: the engine did not start" in done.stderr
    with open(os.path.join(folder, "pid")) as file:
        assert not is_running(file.read().strip())


def test_without_an_engine_one_sentence_says_what_to_do(folder):
    done = run(
        "from fleuve.program import main\nmain()\n",
        folder,
        FLEUVE_BINARY="",
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fleuve: this package carries no engine: install the wheel")
