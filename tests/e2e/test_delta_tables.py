"""Delta tables changed in every way: against a model, against delta-rs, and looked through by `fleuve table check`."""

import glob
import json
import os
import random
import signal
import subprocess
import threading
import time

import pytest

from conftest import FLEUVE

FORMS = {
    "files": "",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "vectors_and_rows": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
    "rows": "'delta.enableRowTracking' = 'true'",
    "changes": "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'",
    "mapped": "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'id', 'delta.enableRowTracking' = 'true'",
}


@pytest.fixture
def spark(start_server):
    return start_server().session()


def check(path, *flags):
    return subprocess.run([FLEUVE, "table", "check", path, *flags], capture_output=True, text=True, timeout=60)


def rows(df):
    return sorted(tuple(r) for r in df.collect())


@pytest.mark.parametrize("form", sorted(FORMS))
def test_random_changes_agree_with_a_model(form, spark, folder):
    path = folder + "/t"
    table = "delta.`%s`" % path
    properties = FORMS[form]
    # A checkpoint every third commit, so that every read goes through one.
    spark.sql(
        "CREATE TABLE %s (id INT, p INT, v STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES (%s)"
        % (table, ", ".join(filter(None, [properties, "'delta.checkpointInterval' = '3'"])))
    )
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    dice = random.Random(form)
    model = {}
    tracked = "RowTracking" in properties
    ids = {}
    # What the table was at each version that can still be read.
    states = {}
    number = 0

    def version():
        return max(int(os.path.basename(f)[:20]) for f in glob.glob(path + "/_delta_log/*.json") if "checkpoint" not in f)

    def tracked_ids():
        return {r[0]: r[1] for r in spark.sql("SELECT id, _metadata.row_id FROM %s" % table).collect()}

    actions = ["insert", "insert", "delete", "update", "merge", "optimize", "overwrite", "restore", "vacuum"]
    if form == "changes":
        actions.remove("vacuum")  # it takes the files that old changes are read from
    for step in range(24):
        action = "insert" if not model else dice.choice(actions)
        low = dice.randrange(max(1, number))
        high = low + dice.randrange(1, 12)
        if action == "insert":
            fresh = list(range(number, number + dice.randrange(1, 20)))
            number = fresh[-1] + 1
            spark.sql("INSERT INTO %s VALUES %s" % (table, ", ".join("(%d, %d, 'i%d')" % (i, i % 3, step) for i in fresh)))
            model.update({i: (i % 3, "i%d" % step) for i in fresh})
        elif action == "delete":
            spark.sql("DELETE FROM %s WHERE id BETWEEN %d AND %d" % (table, low, high))
            model = {i: r for i, r in model.items() if not low <= i <= high}
        elif action == "update":
            spark.sql("UPDATE %s SET v = concat(v, 'u') WHERE id BETWEEN %d AND %d" % (table, low, high))
            model = {i: (p, v + "u" if low <= i <= high else v) for i, (p, v) in model.items()}
        elif action == "merge":
            spark.sql(
                """MERGE INTO %s t USING (SELECT CAST(id AS INT) AS id FROM range(%d, %d)) s ON t.id = s.id
                WHEN MATCHED AND t.id %% 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm'
                WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, s.id %% 3, 'n')
                WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN UPDATE SET v = 'alone'"""
                % (table, low, high)
            )
            after = {}
            for i, (p, v) in model.items():
                if low <= i < high:
                    if i % 2:
                        after[i] = (p, "m")
                else:
                    after[i] = (p, "alone" if i < 3 else v)
            for i in range(low, high):
                if i not in model:
                    after[i] = (i % 3, "n")
            model = after
            number = max(number, high)
        elif action == "overwrite":
            fresh = list(range(number, number + dice.randrange(1, 9)))
            number = fresh[-1] + 1
            spark.sql("INSERT OVERWRITE %s VALUES %s" % (table, ", ".join("(%d, %d, 'o')" % (i, i % 3) for i in fresh)))
            model = {i: (i % 3, "o") for i in fresh}
        elif action == "restore" and states:
            to = dice.choice(sorted(states))
            spark.sql("RESTORE TABLE %s TO VERSION AS OF %d" % (table, to))
            model = dict(states[to])
        elif action == "vacuum":
            time.sleep(0.01)  # files of this millisecond are kept
            spark.sql("VACUUM %s RETAIN 0 HOURS" % table)
            states.clear()
        else:
            spark.sql("OPTIMIZE %s" % table)
        assert rows(spark.table(table)) == sorted((i, p, v) for i, (p, v) in model.items()), (step, action)
        states[version()] = dict(model)
        if form == "files":
            read = pytest.importorskip("deltalake").DeltaTable(path).to_pyarrow_table().to_pylist()
            assert sorted((r["id"], r["p"], r["v"]) for r in read) == sorted((i, p, v) for i, (p, v) in model.items()), step
        if tracked:
            now = tracked_ids()
            assert len(set(now.values())) == len(now)
            assert all(now[i] == ids[i] for i in now if i in ids and action not in ("merge", "overwrite", "restore")), (step, action)
            ids = now
    for at, state in states.items():
        old = spark.read.format("delta").option("versionAsOf", at).load(path)
        assert rows(old) == sorted((i, p, v) for i, (p, v) in state.items()), at
    shown = check(path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    if form == "changes":
        feed = spark.sql("SELECT id, p, v, _change_type, _commit_version FROM table_changes('%s', 0)" % table.replace("'", ""))
        replayed = {}
        for i, p, v, kind, _ in sorted(feed.collect(), key=lambda r: (r[4], r[3] in ("insert", "update_postimage"))):
            if kind in ("delete", "update_preimage"):
                assert replayed.pop(i) == (p, v)
            else:
                replayed[i] = (p, v)
        assert replayed == model


def test_vectors_are_marked_in_the_log(spark, folder):
    path = folder + "/t"
    spark.range(0, 100, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    spark.sql("DELETE FROM delta.`%s` WHERE id %% 10 = 3" % path)
    lines = [json.loads(line) for line in open(path + "/_delta_log/%020d.json" % 1)]
    (add,) = [a["add"] for a in lines if "add" in a]
    assert add["deletionVector"]["cardinality"] == 10
    assert json.loads(add["stats"])["tightBounds"] is False
    assert len(glob.glob(path + "/deletion_vector_*.bin")) == 1
    assert spark.read.format("delta").load(path).count() == 90
    shown = spark.sql("REORG TABLE delta.`%s` APPLY (PURGE)" % path).collect()
    assert shown[0].metrics.numFilesAdded == 1
    lines = [json.loads(line) for line in open(path + "/_delta_log/%020d.json" % 2)]
    assert not any("deletionVector" in a.get("add", {}) for a in lines)
    assert spark.read.format("delta").load(path).count() == 90


def test_other_writers_read_clones_and_identity_columns(spark, folder):
    deltalake = pytest.importorskip("deltalake")
    spark.sql(
        "CREATE TABLE delta.`%s/t` (k BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), v STRING) USING delta"
        % folder
    )
    spark.sql("INSERT INTO delta.`%s/t` (v) VALUES ('a'), ('b')" % folder)
    spark.sql("INSERT INTO delta.`%s/t` (v) VALUES ('c')" % folder)
    spark.sql("CREATE TABLE delta.`%s/c` SHALLOW CLONE delta.`%s/t`" % (folder, folder))
    spark.sql("INSERT INTO delta.`%s/c` (v) VALUES ('d')" % folder)
    for name, expected in [("t", [(10, "a"), (15, "b"), (20, "c")]), ("c", [(10, "a"), (15, "b"), (20, "c"), (25, "d")])]:
        assert rows(spark.table("delta.`%s/%s`" % (folder, name))) == expected
        table = deltalake.DeltaTable("%s/%s" % (folder, name))
        if name == "t":
            read = table.to_pyarrow_table().to_pylist()
            assert sorted((r["k"], r["v"]) for r in read) == expected
        assert check("%s/%s" % (folder, name)).returncode == 0


def test_a_converted_folder_is_read_by_others(spark, folder):
    deltalake = pytest.importorskip("deltalake")
    path = folder + "/pq"
    spark.range(0, 10, 1, 2).selectExpr("id", "CAST(id % 2 AS INT) AS p", "concat('v', id) AS v").write.partitionBy("p").parquet(path)
    spark.sql("CONVERT TO DELTA parquet.`%s` PARTITIONED BY (p INT)" % path)
    read = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    assert sorted(r["id"] for r in read) == list(range(10))
    assert check(path).returncode == 0


def test_check_and_repair_find_what_is_wrong(spark, folder):
    path = folder + "/t"
    for i in range(3):
        spark.range(i * 10, i * 10 + 10, 1, 1).write.format("delta").mode("append").save(path)
    files = sorted(glob.glob(path + "/*.parquet"))
    assert check(path).returncode == 0
    os.remove(files[0])
    shown = check(path)
    assert shown.returncode == 2 and "does not exist" in shown.stdout
    done = subprocess.run([FLEUVE, "table", "repair", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert check(path).returncode == 0
    assert spark.read.format("delta").load(path).count() == 20
    log = path + "/_delta_log/%020d.json" % 0
    text = open(log).read()
    with open(log, "w") as out:
        out.write(text.replace('\\"numRecords\\":10', '\\"numRecords\\":11'))
    shown = check(path)
    # The first file may be the one that is gone; then nothing is left to compare.
    assert shown.returncode in (0, 2)


@pytest.mark.parametrize("words", [["history"], ["detail"], ["optimize"], ["vacuum", "--dry-run"], ["restore", "--version", "1"]])
def test_tables_are_kept_from_the_command_line(words, spark, folder):
    path = folder + "/t"
    for i in range(3):
        spark.range(i, i + 1, 1, 1).write.format("delta").mode("append").save(path)
    done = subprocess.run(
        [FLEUVE, "table", words[0], path, *words[1:], "--warehouse", folder + "/other"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    if words[0] == "restore":
        assert spark.read.format("delta").load(path).count() == 2
    if words[0] == "history":
        assert "WRITE" in done.stdout


@pytest.mark.parametrize("policy,top", [("classic", None), ("v2", "json"), ("v2", "parquet")])
def test_checkpoints_are_written_in_parts(policy, top, spark, folder):
    path = folder + "/t"
    if top:
        spark.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", top)
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "4")
    for i in range(10):
        spark.range(i, i + 1, 1, 1).write.format("delta").mode("append").option("delta.checkpointPolicy", policy).save(path)
    spark.sql("ALTER TABLE delta.`%s` SET TBLPROPERTIES ('a' = 'b')" % path)
    if policy == "classic":
        names = sorted(os.path.basename(f) for f in glob.glob(path + "/_delta_log/*.checkpoint.*"))
        assert names == ["%020d.checkpoint.%010d.%010d.parquet" % (10, i, 3) for i in (1, 2, 3)]
        assert json.load(open(path + "/_delta_log/_last_checkpoint"))["parts"] == 3
    else:
        assert len(glob.glob(path + "/_delta_log/_sidecars/*.parquet")) == 3
        assert len(glob.glob(path + "/_delta_log/%020d.checkpoint.*.%s" % (10, top))) == 1
    assert check(path).returncode == 0
    for old in range(10):
        os.remove(path + "/_delta_log/%020d.json" % old)
    shown = check(path)
    assert shown.returncode == 0 and "10 files" in shown.stdout, shown.stdout


def log_of(path, version):
    return [json.loads(line) for line in open(path + "/_delta_log/%020d.json" % version)]


def test_parts_of_checkpoints_are_a_matter_of_each_session(start_server, folder):
    server = start_server()
    writer, other = server.session(), server.session()
    writer.conf.set("spark.databricks.delta.checkpoint.partSize", "4")
    for i in range(11):
        writer.range(i, i + 1, 1, 1).write.format("delta").mode("append").save(folder + "/in")
    other.range(1).write.format("delta").save(folder + "/else")
    query = (writer.readStream.format("delta").option("maxFilesPerTrigger", 1).load(folder + "/in").writeStream.format("delta")
             .option("checkpointLocation", folder + "/cp").trigger(availableNow=True).start(folder + "/out"))
    query.awaitTermination()
    deadline = time.time() + 20
    while not os.path.exists(folder + "/out/_delta_log/_last_checkpoint"):
        assert time.time() < deadline, "no checkpoint"
        time.sleep(0.1)
    assert len(glob.glob(folder + "/out/_delta_log/*.checkpoint.*.*.parquet")) == 3


def test_every_commit_says_the_metadata_of_the_user(spark, folder):
    path = folder + "/t"
    table = "delta.`%s`" % path
    spark.range(0, 4, 1, 2).write.parquet(folder + "/pq")
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "mine")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql("CREATE TABLE %s (id BIGINT) USING delta" % table)
    spark.range(0, 4, 1, 2).write.format("delta").mode("append").save(path)
    spark.range(4, 5, 1, 1).write.format("delta").mode("append").option("userMetadata", "option").save(path)
    spark.sql("OPTIMIZE %s" % table)
    spark.sql("DELETE FROM %s WHERE id = 1" % table)
    spark.sql("ALTER TABLE %s SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')" % table)
    spark.sql("ALTER TABLE %s DROP FEATURE rowTracking" % table)
    spark.sql("RESTORE TABLE %s TO VERSION AS OF 1" % table)
    spark.sql("VACUUM %s RETAIN 0 HOURS" % table)
    spark.sql("CONVERT TO DELTA parquet.`%s/pq`" % folder)
    shown = {(r.version, r.operation): r.userMetadata for r in spark.sql("DESCRIBE HISTORY %s" % table).collect()}
    assert {"OPTIMIZE", "UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "DROP FEATURE", "RESTORE", "VACUUM START"} <= {o for _, o in shown}
    assert {k for k, v in shown.items() if v != "mine"} == {(2, "WRITE")} and shown[(2, "WRITE")] == "option", shown
    assert spark.sql("DESCRIBE HISTORY delta.`%s/pq`" % folder).first().userMetadata == "mine"
    spark.range(1).write.format("delta").option("userMetadata", "option").saveAsTable("named")
    assert spark.sql("DESCRIBE HISTORY named").first().userMetadata == "option"


@pytest.mark.parametrize("step", [1, -5])
def test_restore_gives_no_identity_value_again(step, spark, folder):
    path = folder + "/t"
    table = "delta.`%s`" % path
    spark.sql("CREATE TABLE %s (k BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY %d), v STRING) USING delta" % (table, step))
    spark.sql("INSERT INTO %s (v) VALUES ('a')" % table)
    spark.sql("INSERT INTO %s (v) VALUES ('b'), ('c')" % table)
    for version, there in [(1, ["a"]), (0, [])]:
        restored = spark.sql("DESCRIBE HISTORY %s" % table).first().version + 1
        spark.sql("RESTORE TABLE %s TO VERSION AS OF %d" % (table, version))
        assert not any("metaData" in action for action in log_of(path, restored))
        assert [r[1] for r in rows(spark.table(table))] == there
    spark.sql("INSERT INTO %s (v) VALUES ('d')" % table)
    assert rows(spark.table(table)) == [(100 + 3 * step, "d")]
    assert check(path).returncode == 0


@pytest.mark.parametrize("change", ["DELETE FROM %s WHERE id % 2 = 1", "OPTIMIZE %s", "INSERT INTO %s VALUES (100)"])
def test_dropping_row_tracking_meets_another_commit(change, start_server, folder):
    path = folder + "/t"
    table = "delta.`%s`" % path
    os.makedirs(folder + "/first")
    other = start_server().session()
    for low in (0, 5):
        other.range(low, low + 5, 1, 1).write.format("delta").mode("append").option("delta.enableRowTracking", "true").save(path)
    other.sql("ALTER TABLE %s SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')" % table)
    # The first process stops itself between its plan and its commit.
    first = start_server(env={"FLEUVE_FAILPOINTS": "delta.commit.staged=stop"}, where=folder + "/first")
    session = first.session()
    failures = []

    def drop():
        try:
            session.sql("ALTER TABLE %s DROP FEATURE rowTracking" % table)
        except Exception as e:
            failures.append(str(e))

    dropping = threading.Thread(target=drop)
    dropping.start()
    try:
        deadline = time.time() + 20
        while open("/proc/%d/stat" % first.pid).read().split(") ")[1][0] != "T":
            assert time.time() < deadline, "the first process did not reach its commit"
            time.sleep(0.05)
        other.sql(change.replace("%s", table))
        expected = rows(other.table(table))
    finally:
        os.kill(first.pid, signal.SIGCONT)
    dropping.join()
    assert len(failures) == 1 and "DELTA_" in failures[0], failures
    assert rows(other.table(table)) == expected
    session.sql("ALTER TABLE %s DROP FEATURE rowTracking" % table)
    assert rows(other.table(table)) == expected
    assert check(path).returncode == 0


def test_rows_are_counted_without_a_look_into_the_files(spark, folder):
    path = folder + "/t"
    table = "delta.`%s`" % path
    spark.sql(
        "CREATE TABLE %s (id BIGINT, numRecords BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')" % table
    )
    for i in range(3):
        spark.sql("INSERT INTO %s SELECT id, id * 7 FROM range(%d, %d)" % (table, i * 100, i * 100 + 100))
    spark.sql("DELETE FROM %s WHERE id %% 10 = 3" % table)
    counts = lambda: [
        spark.table(table).count(),
        spark.sql("SELECT count(*) FROM %s" % table).collect()[0][0],
        spark.sql("SELECT count(1) + 1 FROM (SELECT id * 2 FROM %s)" % table).collect()[0][0] - 1,
        spark.sql("SELECT count(*), count(2) FROM %s" % table).collect()[0][1],
    ]
    assert counts() == [270] * 4
    others = lambda: (
        spark.sql("SELECT count(*) FROM %s WHERE id < 50" % table).collect()[0][0],
        spark.sql("SELECT count(id), count(DISTINCT id), count(*) FILTER (WHERE id < 50) FROM %s" % table).collect()[0],
        spark.sql("SELECT count(*) FROM %s GROUP BY GROUPING SETS (())" % table).collect()[0][0],
        spark.sql("SELECT count(*) FROM (SELECT * FROM %s LIMIT 5)" % table).collect()[0][0],
        spark.sql("SELECT count(NULL) FROM %s" % table).collect()[0][0],
    )
    assert others() == (45, (270, 270, 45), 270, 5, 0)
    for name in glob.glob(path + "/*.parquet"):
        os.rename(name, name + ".away")
    assert counts() == [270] * 4
    with pytest.raises(Exception):
        others()
