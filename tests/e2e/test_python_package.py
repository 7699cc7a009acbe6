"""The Python package of python/fleuve on the binary under test: session(), display()."""

import json
import os
import subprocess
import sys

from conftest import FLEUVE

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def run(program, folder, **environment):
    path = os.path.join(folder, "program.py")
    with open(path, "w") as file:
        file.write(program)
    return subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={
            **{k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "FLEUVE_REMOTE")},
            "PYTHONPATH": os.path.join(ROOT, "python"),
            "FLEUVE_BINARY": FLEUVE,
            **environment,
        },
    )


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


def test_without_an_engine_one_sentence_says_what_to_do(folder):
    done = run(
        "from fleuve.program import main\nmain()\n",
        folder,
        FLEUVE_BINARY="",
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fleuve: this package carries no engine: install the wheel")
