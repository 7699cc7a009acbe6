"""The program `fleuve`: its commands, exit codes and settings."""

import os
import re
import signal
import subprocess
import threading
import sys
import time

from conftest import FLEUVE


def fleuve(*words, folder, env=None, stdin=None):
    environment = {**os.environ, "XDG_CONFIG_HOME": folder + "/config", "XDG_DATA_HOME": folder + "/data", **(env or {})}
    environment.setdefault("FLEUVE_PYTHON", sys.executable)
    return subprocess.run([FLEUVE, *words], capture_output=True, text=True, env=environment, timeout=60, input=stdin)


def test_version_and_help(folder):
    assert fleuve("version", folder=folder).stdout.startswith("fleuve ")
    shown = fleuve("--help", folder=folder).stdout
    for word in ("server", "run", "sql", "version"):
        assert word in shown


def test_sql_from_text(folder):
    done = fleuve("sql", "-e", "SELECT 1 + 1 AS two; SELECT ';' AS semicolon", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "|2  |" in done.stdout
    assert "semicolon" in done.stdout


def test_sql_script_stops_at_the_first_error(folder):
    path = folder + "/script.sql"
    with open(path, "w") as script:
        script.write("SELECT 'before' AS a;\nSELECT nothing FROM nowhere;\nSELECT 'after' AS b;\n")
    done = fleuve("run", path, folder=folder)
    assert done.returncode == 1
    assert "before" in done.stdout
    assert "after" not in done.stdout
    assert "TABLE_OR_VIEW_NOT_FOUND" in done.stderr


def test_sql_from_standard_input(folder):
    assert "|7  |" in fleuve("sql", folder=folder, stdin="select 7 as x;").stdout


def test_python_program_has_spark_and_its_own_arguments(folder):
    path = folder + "/program.py"
    with open(path, "w") as program:
        program.write("import sys\nprint(sys.argv[1:], spark.range(3).count(), __name__)\nsys.exit(5)\n")
    done = fleuve("run", path, "--flag", "a b", folder=folder)
    assert done.stdout.strip() == "['--flag', 'a b'] 3 __main__", done.stderr
    assert done.returncode == 5


def test_python_without_pyspark_is_told_what_to_install(folder):
    path = folder + "/program.py"
    open(path, "w").close()
    bare = folder + "/bare-python"
    with open(bare, "w") as script:
        script.write("#!/bin/sh\nexec %s -S -E -I \"$@\"\n" % sys.executable)
    os.chmod(bare, 0o755)
    done = fleuve("run", path, folder=folder, env={"FLEUVE_PYTHON": bare})
    assert done.returncode == 1
    assert "pip install" in done.stderr and "Traceback" not in done.stderr


def test_settings_file_gives_way_to_environment_and_flags(folder):
    os.makedirs(folder + "/config/fleuve")
    with open(folder + "/config/fleuve/fleuve.conf", "w") as conf:
        conf.write("# a comment\nspark.sql.session.timeZone  Europe/Paris\n\nspark.custom.key from file\n")
    query = "SELECT current_timezone() AS zone"
    assert "Europe/Paris" in fleuve("sql", "-e", query, folder=folder).stdout
    by_environment = {"FLEUVE_CONF": "spark.sql.session.timeZone=Asia/Tokyo"}
    assert "Asia/Tokyo" in fleuve("sql", "-e", query, folder=folder, env=by_environment).stdout
    by_flag = fleuve("sql", "--conf", "spark.sql.session.timeZone=UTC", "-e", query, folder=folder, env=by_environment)
    assert "|UTC" in by_flag.stdout
    bad = fleuve("sql", "--conf", "nonsense", "-e", "SELECT 1", folder=folder)
    assert bad.returncode == 1 and "--conf" in bad.stderr


def test_default_format_is_delta_and_tables_stay(folder):
    made = fleuve("sql", "-e", "CREATE TABLE t AS SELECT 1 AS a", folder=folder)
    assert made.returncode == 0, made.stderr
    assert os.path.isdir(folder + "/data/fleuve/warehouse/t/_delta_log")
    assert "|1  |" in fleuve("sql", "-e", "SELECT * FROM t", folder=folder).stdout


def test_run_against_another_server(folder, server):
    path = folder + "/program.py"
    with open(path, "w") as program:
        program.write("spark.range(4).write.saveAsTable('remote_t')\n")
    assert fleuve("run", "--remote", server.url, path, folder=folder).returncode == 0
    shown = fleuve("sql", "--remote", server.url, "-e", "SELECT count(*) AS n FROM remote_t", folder=folder)
    assert "|4  |" in shown.stdout


def test_server_ends_on_signals_within_five_seconds(folder, start_server):
    for number in (signal.SIGTERM, signal.SIGINT):
        server = start_server()
        spark = server.session()
        query = spark.readStream.format("rate").load().writeStream.format("noop").option(
            "checkpointLocation", "%s/checkpoint-%d" % (folder, number)).start()
        assert query.isActive
        began = time.time()
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
        assert time.time() - began < 5


def test_server_ends_beside_work_that_does_not_hear(start_server):
    server = start_server()
    session = server.session()

    def work():
        try:
            session.sql("SELECT levenshtein(repeat('ab', 200000), repeat('ba', 200000))").collect()
        except Exception:
            pass  # the server is gone

    threading.Thread(target=work, daemon=True).start()
    time.sleep(1)
    began = time.time()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 0
    assert time.time() - began < 5.5


def test_port_opens_at_once(start_server):
    began = time.time()
    server = start_server()
    assert re.match(r"sc://127\.0\.0\.1:\d+$", server.url)
    # The promise is 0.1 s on an idle machine; this bound only catches a start-up that grew by seconds.
    assert time.time() - began < 2
