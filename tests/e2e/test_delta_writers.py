"""Several processes and engines that write one table at the same time, and what long work shows on a terminal."""

import json
import os
import pty
import subprocess
import sys
import threading

import pytest

from conftest import FLEUVE


def check(path):
    return subprocess.run([FLEUVE, "table", "check", path], capture_output=True, text=True, timeout=120)


def versions(path):
    return sorted(int(f[:20]) for f in os.listdir(path + "/_delta_log") if f.endswith(".json") and len(f) == 25)


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


RS_WRITER = """
import sys
import pyarrow as pa
from deltalake import write_deltalake
path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(first, first + count):
    write_deltalake(path, pa.table({"id": pa.array([i], pa.int64()), "who": ["rs"]}), mode="append")
"""


def test_two_servers_and_delta_rs_append_at_once(start_server, folder, tmp_path):
    pytest.importorskip("deltalake")
    path = folder + "/t"
    servers = [start_server(where=str(tmp_path / name)) for name in ("a", "b") if not (tmp_path / name).mkdir()]
    sessions = [server.session() for server in servers]
    sessions[0].sql("CREATE TABLE delta.`%s` (id BIGINT, who STRING) USING delta" % path)
    each = 15
    failures = []

    def fleuve(number, session):
        for i in range(each):
            session.sql("INSERT INTO delta.`%s` VALUES (%d, 'fleuve')" % (path, number * 1000 + i))

    def rust(number):
        done = subprocess.run(
            [sys.executable, "-c", RS_WRITER, path, str(number * 1000), str(each)], capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            failures.append(done.stderr[-2000:])

    threads = [threading.Thread(target=fleuve, args=(n, sessions[n % 2])) for n in range(4)]
    threads += [threading.Thread(target=rust, args=(10 + n,)) for n in range(2)]
    run_all(threads)
    assert not failures
    for session in sessions:
        ids = sorted(r.id for r in session.table("delta.`%s`" % path).collect())
        assert ids == sorted(n * 1000 + i for n in (0, 1, 2, 3, 10, 11) for i in range(each))
    assert versions(path)[-1] == 6 * each
    shown = check(path)
    assert shown.returncode == 0, shown.stdout


def test_rows_of_one_file_are_changed_by_many_at_once(start_server, folder, tmp_path):
    path = folder + "/t"
    table = "delta.`%s`" % path
    servers = [start_server(where=str(tmp_path / name)) for name in ("a", "b") if not (tmp_path / name).mkdir()]
    sessions = [server.session() for server in servers]
    sessions[0].sql(
        "CREATE TABLE %s (id BIGINT, v BIGINT) USING delta TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')" % table
    )
    sessions[0].range(0, 400, 1, 1).selectExpr("id", "id AS v").write.format("delta").mode("append").save(path)
    failures = []

    def change(number):
        session = sessions[number % 2]
        for i in range(6):
            row = number * 50 + i
            try:
                if i % 2:
                    session.sql("DELETE FROM %s WHERE id = %d" % (table, row))
                else:
                    session.sql("UPDATE %s SET v = v + 1000 WHERE id = %d" % (table, row))
            except Exception as error:
                failures.append(str(error)[:300])

    run_all([threading.Thread(target=change, args=(n,)) for n in range(8)])
    assert not failures
    expected = {i: i for i in range(400)}
    for number in range(8):
        for i in range(6):
            row = number * 50 + i
            if i % 2:
                del expected[row]
            else:
                expected[row] += 1000
    assert {r.id: r.v for r in sessions[1].table(table).collect()} == expected
    assert check(path).returncode == 0


def test_a_commit_that_was_replaced_is_told(start_server, folder):
    server = start_server()
    spark = server.session()
    path = folder + "/t"
    spark.sql("CREATE TABLE delta.`%s` (id BIGINT) USING delta" % path)
    spark.sql("INSERT INTO delta.`%s` VALUES (1)" % path)
    # As a writer does that looks for the name and then renames without looking.
    entry = {"commitInfo": {"operation": "WRITE", "engineInfo": "careless", "txnId": "x"}}
    with open(path + "/_delta_log/.tmp", "w") as out:
        out.write(json.dumps(entry) + "\n")
    os.rename(path + "/_delta_log/.tmp", path + "/_delta_log/%020d.json" % 1)
    with pytest.raises(Exception, match="FLEUVE_COMMIT_REPLACED"):
        spark.sql("INSERT INTO delta.`%s` VALUES (2)" % path)
    assert "FLEUVE_COMMIT_REPLACED" in open(server.log_path).read()
    spark.sql("INSERT INTO delta.`%s` VALUES (3)" % path)
    assert [r.id for r in spark.table("delta.`%s`" % path).collect()] == [3]


def on_a_terminal(*words):
    """Runs with the standard error on a terminal of its own; gives the exit code and what stood there."""
    here, there = pty.openpty()
    shown = []

    def read():
        while True:
            try:
                some = os.read(here, 65536)
            except OSError:
                return
            if not some:
                return
            shown.append(some)

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run([FLEUVE, *words], stdout=subprocess.PIPE, stderr=there, timeout=120)
    os.close(there)
    reader.join(10)
    os.close(here)
    return done.returncode, b"".join(shown).decode(errors="replace")


def test_long_work_shows_how_far_it_is_on_a_terminal_alone(start_server, folder):
    path = folder + "/t"
    spark = start_server().session()
    spark.range(0, 100, 1, 1).write.format("delta").save(path)
    # Entries of one real file under many names: looking for them takes a while.
    (line,) = [x for x in open(path + "/_delta_log/%020d.json" % 0) if x.startswith('{"add"')]
    add = json.loads(line)["add"]
    name = path + "/" + add["path"]
    lines = []
    for i in range(20000):
        os.link(name, path + "/copy-%d.parquet" % i)
        lines.append(json.dumps({"add": {**add, "path": "copy-%d.parquet" % i}}))
    with open(path + "/_delta_log/%020d.json" % 1, "w") as out:
        out.write("\n".join(lines) + "\n")
    code, shown = on_a_terminal("table", "check", path)
    assert code == 0, shown
    assert "check: files" in shown and " % " in shown and " of 40002" in shown
    assert shown.rstrip("\r\n").endswith("\x1b[K"), "the line is left empty"
    piped = check(path)
    assert piped.returncode == 0 and piped.stderr == ""


def test_the_command_line_knows_lite_and_full(start_server, folder):
    path = folder + "/t"
    spark = start_server().session()
    spark.sql("CREATE TABLE delta.`%s` (id BIGINT, v BIGINT) USING delta CLUSTER BY (id, v)" % path)
    for i in range(3):
        spark.sql("INSERT INTO delta.`%s` VALUES (%d, 1)" % (path, i))
    flags = ["--warehouse", folder + "/other"]
    for words in (["optimize", path], ["optimize", path, "--full"], ["vacuum", path, "--lite"], ["vacuum", path, "--lite", "--dry-run"]):
        done = subprocess.run([FLEUVE, "table", *words, *flags], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert len([f for f in os.listdir(path + "/_delta_log") if f == "_last_vacuum_info"]) <= 1
    assert check(path).returncode == 0
