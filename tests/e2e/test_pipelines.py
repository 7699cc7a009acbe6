"""Declarative pipelines as their users run them, and the messages that no ordinary client sends."""

import json
import os
import re
import subprocess
import sys

import pyspark.sql.connect.proto as pb2
import pytest
from pyspark.errors import PySparkException
from conftest import FLEUVE

pytest.importorskip("pyspark.pipelines")


def project(folder, files, configuration=None):
    lines = ["name: p", "storage: file://%s/storage" % folder, "database: pipes", "configuration:"]
    for key, value in {"spark.sql.pipelines.maxFlowRetryAttempts": "0", **(configuration or {})}.items():
        lines.append('  %s: "%s"' % (key, value))
    lines += ["libraries:", "  - glob:", "      include: t/**"]
    os.makedirs(folder + "/p/t", exist_ok=True)
    for name, text in {"spark-pipeline.yml": "\n".join(lines) + "\n", **{"t/" + n: t for n, t in files.items()}}.items():
        with open(folder + "/p/" + name, "w") as f:
            f.write(text.replace("${tmp}", folder))
    return folder + "/p/spark-pipeline.yml"


def run(server, spec, *words, command="run"):
    done = subprocess.run(
        [FLEUVE, "pipelines", command, "--spec", spec, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env={**os.environ, "SPARK_REMOTE": server.url, "FLEUVE_PYTHON": sys.executable},
    )
    return done.returncode, re.sub(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d: ", "", done.stdout)


def states(text, flow):
    return re.findall(r"(?m)^Flow '?\S*%s'? (?:is |has )?([A-Z]+)" % flow, text)


@pytest.fixture
def spark(server):
    session = server.session()
    session.sql("CREATE DATABASE IF NOT EXISTS pipes")
    session.sql("USE pipes")
    return session


def command(spark, **fields):
    made = pb2.Command()
    for name, message in fields.items():
        getattr(made.pipeline_command, name).CopyFrom(message)
    return spark.client.execute_command(made)[1]["pipeline_command_result"]


def new_graph(spark):
    result = command(spark, create_dataflow_graph=pb2.PipelineCommand.CreateDataflowGraph(default_database="pipes"))
    return result.create_dataflow_graph_result.dataflow_graph_id


def start(spark, graph, folder, **fields):
    made = pb2.Command()
    made.pipeline_command.start_run.CopyFrom(
        pb2.PipelineCommand.StartRun(dataflow_graph_id=graph, storage="file://%s/storage" % folder, **fields)
    )
    messages = []
    for result in spark.client.execute_command_as_iterator(made):
        if "pipeline_event_result" in result:
            messages.append(result["pipeline_event_result"].event.message)
    return messages


def define_sql(spark, graph, text):
    command(
        spark,
        define_sql_graph_elements=pb2.PipelineCommand.DefineSqlGraphElements(
            dataflow_graph_id=graph, sql_text=text, sql_file_path="a.sql"
        ),
    )


def test_an_unknown_graph_is_refused(spark, tmp_path):
    with pytest.raises(PySparkException) as raised:
        start(spark, "no-graph", tmp_path)
    assert raised.value.getCondition() == "DATAFLOW_GRAPH_NOT_FOUND"


def test_selections_that_contradict_each_other_are_refused(spark, tmp_path):
    graph = new_graph(spark)
    define_sql(spark, graph, "CREATE MATERIALIZED VIEW a AS SELECT 1 AS x")
    for fields in ({"full_refresh_all": True, "refresh_selection": ["a"]}, {"full_refresh_selection": ["a"], "refresh_selection": ["pipes.a"]}):
        with pytest.raises(PySparkException) as raised:
            start(spark, graph, tmp_path, **fields)
        assert "a" in str(raised.value)
    with pytest.raises(PySparkException):
        command(spark, drop_dataflow_graph=pb2.PipelineCommand.DropDataflowGraph(dataflow_graph_id="x"))
    command(spark, drop_dataflow_graph=pb2.PipelineCommand.DropDataflowGraph(dataflow_graph_id=graph))
    with pytest.raises(PySparkException):
        start(spark, graph, tmp_path)


def test_names_of_definitions_come_back_qualified(spark):
    graph = new_graph(spark)
    output = pb2.PipelineCommand.DefineOutput(dataflow_graph_id=graph, output_name="T", output_type=pb2.OutputType.TABLE)
    name = command(spark, define_output=output).define_output_result.resolved_identifier
    assert (name.catalog_name, list(name.namespace), name.table_name) == ("spark_catalog", ["pipes"], "t")


def test_a_flow_that_fails_once_is_tried_again_and_its_reader_waits(server, spark, tmp_path):
    folder = str(tmp_path)
    os.makedirs(folder + "/in")
    spec = project(
        folder,
        {"a.sql": "CREATE MATERIALIZED VIEW up AS SELECT * FROM json.`${tmp}/in/missing`;\nCREATE MATERIALIZED VIEW down AS SELECT count(*) AS n FROM up;\n"},
    )
    code, text = run(server, spec, command="dry-run")
    assert code != 0 and "PATH_NOT_FOUND" in text
    spec = project(
        folder,
        {
            "a.sql": "CREATE MATERIALIZED VIEW up AS SELECT CAST(raise_error('x') AS INT) AS a FROM range(1);\n"
            "CREATE MATERIALIZED VIEW down AS SELECT count(*) AS n FROM up;\n"
        },
        {"spark.sql.pipelines.maxFlowRetryAttempts": "1", "spark.sql.pipelines.execution.watchdog.minRetryTime": "1"},
    )
    code, text = run(server, spec)
    assert code != 0
    assert states(text, "up") == ["QUEUED", "PLANNING", "STARTING", "RUNNING", "FAILED", "PLANNING", "STARTING", "RUNNING", "FAILED"]
    assert states(text, "down") == ["QUEUED", "SKIPPED"]


def test_one_flow_at_a_time(server, spark, tmp_path):
    names = "abcd"
    files = {"a.sql": "".join("CREATE MATERIALIZED VIEW m%s AS SELECT 1 AS x;\n" % n for n in names)}
    spec = project(str(tmp_path), files, {"spark.sql.pipelines.execution.maxConcurrentFlows": "1"})
    code, text = run(server, spec)
    assert code == 0
    running = 0
    for state in re.findall(r"(?m)^Flow \S+ (?:is|has) (RUNNING|COMPLETED)", text):
        running += 1 if state == "RUNNING" else -1
        assert running in (0, 1)


def test_settings_views_and_names_of_files(server, spark, tmp_path):
    files = {
        "one.sql": "SET spark.sql.session.timeZone = Asia/Tokyo;\nCREATE MATERIALIZED VIEW zone AS SELECT current_timezone() AS z;\n",
        "two.sql": "CREATE MATERIALIZED VIEW other AS SELECT current_timezone() AS z;\nCREATE VIEW kept AS SELECT z FROM zone;\n",
        "three.sql": "CREATE TEMPORARY VIEW hidden AS SELECT upper(z) AS z FROM kept;\nCREATE MATERIALIZED VIEW last AS SELECT * FROM hidden;\n",
    }
    code, text = run(server, project(str(tmp_path), files))
    assert code == 0, text
    assert spark.table("pipes.zone").collect()[0].z == "Asia/Tokyo"
    assert spark.table("pipes.other").collect()[0].z != "Asia/Tokyo"
    assert spark.table("pipes.last").collect()[0].z == "ASIA/TOKYO"
    assert "hidden" not in [r.tableName for r in spark.sql("SHOW TABLES IN pipes").collect()]


def test_new_columns_reach_a_streaming_table_and_what_reads_it(server, spark, tmp_path):
    spark.sql("CREATE TABLE pipes.src (id BIGINT) USING delta")
    spark.sql("INSERT INTO pipes.src VALUES (1)")
    sql = "CREATE STREAMING TABLE st AS SELECT %s FROM STREAM(src);\nCREATE MATERIALIZED VIEW mv AS SELECT * FROM st;\n"
    assert run(server, project(str(tmp_path), {"a.sql": sql % "id"}))[0] == 0
    spark.sql("INSERT INTO pipes.src VALUES (2)")
    code, text = run(server, project(str(tmp_path), {"a.sql": sql % "id, id * 10 AS big"}))
    assert code == 0, text
    assert sorted(tuple(r) for r in spark.table("pipes.mv").collect()) == [(1, None), (2, 20)]
    spark.sql("INSERT INTO pipes.src VALUES (3)")
    assert run(server, project(str(tmp_path), {"a.sql": sql % "id"}))[0] == 0
    assert sorted(tuple(r) for r in spark.table("pipes.st").collect()) == [(1, None), (2, 20), (3, None)]


def test_what_must_not_be_reset_is_not(server, spark, tmp_path):
    spark.sql("CREATE TABLE pipes.src (id BIGINT) USING delta")
    spark.sql("INSERT INTO pipes.src VALUES (1)")
    sql = "CREATE STREAMING TABLE fixed TBLPROPERTIES ('pipelines.reset.allowed' = 'false') AS SELECT id FROM STREAM(src);\n"
    spec = project(str(tmp_path), {"a.sql": sql})
    assert run(server, spec)[0] == 0
    code, text = run(server, spec, "--full-refresh", "fixed")
    assert code != 0 and "TABLE_NOT_RESETTABLE" in text
    code, text = run(server, spec, "--full-refresh-all")
    assert code == 0, text
    assert [r.id for r in spark.table("pipes.fixed").collect()] == [1]
    assert os.listdir(str(tmp_path) + "/storage/_checkpoints/spark_catalog/pipes/fixed/fixed") == ["0"]


def test_events_and_quality_are_kept(server, spark, tmp_path):
    spark.sql("CREATE TABLE pipes.src (id BIGINT) USING delta")
    spark.sql("INSERT INTO pipes.src VALUES (1), (2), (-3), (NULL)")
    sql = (
        "CREATE STREAMING TABLE good (CONSTRAINT positive EXPECT (id > 0) ON VIOLATION DROP ROW, CONSTRAINT small EXPECT (id < 2))"
        " AS SELECT id FROM STREAM(src);\n"
    )
    code, text = run(server, project(str(tmp_path), {"a.sql": sql}))
    assert code == 0, text
    assert sorted(r.id for r in spark.table("pipes.good").collect()) == [1, 2]
    (log,) = os.listdir(str(tmp_path) + "/storage/_events")
    with open(str(tmp_path) + "/storage/_events/" + log) as f:
        events = [json.loads(line) for line in f]
    (done,) = [e for e in events if e["details"].get("status") == "COMPLETED"]
    quality = done["details"]["data_quality"]
    assert quality["dropped_records"] == 2
    assert [(e["name"], e["passed_records"], e["failed_records"]) for e in quality["expectations"]] == [("positive", 2, 2), ("small", 2, 2)]
    assert events[-1]["details"]["state"] == "COMPLETED"


def test_a_broken_full_refresh_is_done_again(server, spark, tmp_path):
    spark.sql("CREATE TABLE pipes.src (id BIGINT) USING delta")
    spark.sql("INSERT INTO pipes.src VALUES (1)")
    spec = project(str(tmp_path), {"a.sql": "CREATE STREAMING TABLE st AS SELECT id FROM STREAM(src);\n"})
    assert run(server, spec)[0] == 0
    # As a process leaves it that dies after it has emptied the table.
    spark.sql("DELETE FROM pipes.st")
    with open(str(tmp_path) + "/storage/_checkpoints/spark_catalog/pipes/st/_reset", "w") as f:
        f.write("{}")
    assert run(server, spec)[0] == 0
    assert [r.id for r in spark.table("pipes.st").collect()] == [1]
    assert sorted(os.listdir(str(tmp_path) + "/storage/_checkpoints/spark_catalog/pipes/st")) == ["st"]


def test_auto_cdc_does_not_depend_on_order_or_batches(server, spark, tmp_path):
    events = [(1, "a", "U", 1), (1, "b", "U", 2), (1, "b", "U", 4), (2, "x", "U", 3), (2, None, "D", 5), (2, "y", "U", 8), (1, "c", "U", 9), (3, None, "D", 1)]
    results = set()
    for number, order in enumerate((range(8), (7, 6, 5, 4, 3, 2, 1, 0), (4, 0, 6, 2, 5, 1, 7, 3))):
        folder = str(tmp_path) + "/%d" % number
        spark.sql("DROP TABLE IF EXISTS pipes.cdc")
        for name in ("one", "two"):
            spark.sql("DROP TABLE IF EXISTS pipes." + name)
        spark.sql("CREATE TABLE pipes.cdc (id BIGINT, v STRING, op STRING, seq BIGINT) USING delta")
        rules = "FROM STREAM(cdc) KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE"
        sql = "CREATE STREAMING TABLE one FLOW AUTO CDC %s 1;\nCREATE STREAMING TABLE two FLOW AUTO CDC %s 2;\n" % (rules, rules)
        spec = project(folder, {"a.sql": sql})
        for chunk in range(0, 8, 3 + number):
            rows = [events[i] for i in list(order)[chunk : chunk + 3 + number]]
            spark.createDataFrame(rows, "id BIGINT, v STRING, op STRING, seq BIGINT").write.insertInto("pipes.cdc")
            code, text = run(server, spec)
            assert code == 0, text
        results.add(
            str([sorted(tuple(r) for r in spark.table("pipes." + t).collect()) for t in ("one",)])
            + str(sorted(str(tuple(r)) for r in spark.table("pipes.two").collect()))
        )
    assert len(results) == 1, results
    assert "(1, 'c'), (2, 'y')" in results.pop()


def test_streaming_tables_and_materialized_views_of_plain_sql(spark):
    spark.sql("CREATE TABLE pipes.src (id BIGINT) USING delta")
    spark.sql("INSERT INTO pipes.src VALUES (1)")
    spark.sql("CREATE STREAMING TABLE st AS SELECT id FROM STREAM(src)")
    spark.sql("CREATE MATERIALIZED VIEW mv AS SELECT count(*) AS n FROM st")
    spark.sql("INSERT INTO pipes.src VALUES (2)")
    assert spark.table("st").count() == 1
    spark.sql("REFRESH STREAMING TABLE st")
    spark.sql("REFRESH MATERIALIZED VIEW mv")
    assert spark.table("mv").collect()[0].n == 2
    spark.sql("REFRESH STREAMING TABLE st FULL")
    assert sorted(r.id for r in spark.table("st").collect()) == [1, 2]
    for wrong in ("CREATE STREAMING TABLE st AS SELECT id FROM STREAM(src)", "REFRESH MATERIALIZED VIEW st", "REFRESH STREAMING TABLE src"):
        with pytest.raises(PySparkException):
            spark.sql(wrong)
    spark.sql("DROP TABLE st")
    spark.sql("CREATE STREAMING TABLE st AS SELECT id FROM STREAM(src)")
    assert sorted(r.id for r in spark.table("st").collect()) == [1, 2]
