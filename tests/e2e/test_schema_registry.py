"""from_avro and to_avro beside a schema registry: a small HTTP server that speaks Confluent's protocol."""

import base64
import http.server
import json
import threading
import urllib.parse

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import call_function, col, create_map, expr, lit, struct

V1 = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})
V2 = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string", "default": "none"}]})


class Registry:
    """Subjects and their schemas; `down` makes it drop connections, `failures` answer so many requests with 503."""

    def __init__(self):
        self.schemas, self.subjects, self.requests = [], {}, []
        self.user_info, self.failures = None, 0
        self.server = None
        self.port = 0
        self.start()

    def start(self):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, value):
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle_one(self, body):
                registry.requests.append(f"{self.command} {self.path}")
                if registry.failures > 0:
                    registry.failures -= 1
                    return self.answer(503, {"message": "not now"})
                wanted = registry.user_info and "Basic " + base64.b64encode(registry.user_info.encode()).decode()
                if wanted and self.headers.get("Authorization") != wanted:
                    return self.answer(401, {"message": "Unauthorized"})
                self.answer(*registry.reply([urllib.parse.unquote(p) for p in self.path.strip("/").split("/")], body))

            def do_GET(self):
                self.handle_one(None)

            def do_POST(self):
                self.handle_one(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def add(self, subject, schema):
        """The number of the schema, which begins at 1."""
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def reply(self, path, body):
        if path[:2] == ["schemas", "ids"]:
            number = int(path[2])
            if number > len(self.schemas):
                return 404, {"error_code": 40403, "message": "Schema not found"}
            entry = self.schemas[number - 1]
            return 200, entry if isinstance(entry, dict) else {"schema": entry}
        subject = path[1]
        if body is not None and path[2:] == ["versions"]:
            return 200, {"id": self.add(subject, body["schema"])}
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if body is not None:
            known = [n for n in self.subjects[subject] if self.schemas[n - 1] == body["schema"]]
            return (200, {"id": known[0]}) if known else (404, {"message": "Schema not found"})
        newest = self.subjects[subject][-1]
        return 200, {"subject": subject, "version": len(self.subjects[subject]), "id": newest, "schema": self.schemas[newest - 1]}


@pytest.fixture
def registry():
    registry = Registry()
    yield registry
    registry.stop()


def value(number, payload):
    return b"\0" + number.to_bytes(4, "big") + payload


def options(registry, subject="t-value", **more):
    return {"schema.registry.url": registry.url, "schema.registry.subject": subject, **{k.replace("_", "."): v for k, v in more.items()}}


def rows(frame):
    return [row.asDict(recursive=True) for row in frame.collect()]


def test_values_of_several_writers_are_read_with_the_newest_schema(spark, registry):
    first, second = registry.add("t-value", V1), registry.add("t-value", V2)
    frame = spark.createDataFrame([(value(first, b"\x02"),), (value(second, b"\x04\x02z"),), (value(first, b"\x06"),), (None,)], "v BINARY")
    read = frame.select(from_avro("v", "", options(registry)).alias("x"))
    assert read.schema.simpleString() == "struct<x:struct<id:bigint,name:string>>"
    assert rows(read) == [{"x": {"id": 1, "name": "none"}}, {"x": {"id": 2, "name": "z"}}, {"x": {"id": 3, "name": "none"}}, {"x": None}]
    before = len(registry.requests)
    assert len(rows(read)) == 4
    assert not [r for r in registry.requests[before:] if "/schemas/ids/" in r], "a number is asked for once"
    # A schema of one's own, and the form with subject and address.
    own = frame.select(from_avro("v", V1, {"schema.registry.url": registry.url}).alias("x")).select("x.id")
    assert [r["id"] for r in rows(own)] == [1, 2, 3, None]
    by_address = frame.selectExpr(f"from_avro(v, 't-value', '{registry.url}').name AS name")
    assert [r["name"] for r in rows(by_address)] == ["none", "z", "none", None]


def test_values_without_a_number_or_with_an_unknown_one_are_malformed(spark, registry):
    number = registry.add("t-value", V1)
    frame = spark.createDataFrame([(b"\x02",), (b"\x01" + value(number, b"\x02")[1:],), (value(77, b"\x02"),), (value(number, b"\x02"),)], "v BINARY")
    read = frame.select(from_avro("v", "", options(registry, mode="PERMISSIVE")).alias("x")).select("x.id")
    assert [r["id"] for r in rows(read)] == [None, None, None, 1]
    with pytest.raises(PySparkException, match="Malformed records"):
        frame.select(from_avro("v", "", options(registry))).collect()


def test_written_values_carry_the_number(spark, registry):
    number = registry.add("t-value", V1)
    frame = spark.range(3)
    form = f"to_avro(struct(id), 't-value', '{registry.url}')"
    assert [bytes(r["v"]) for r in rows(frame.select(expr(form).alias("v")))] == [value(number, b"\0"), value(number, b"\x02"), value(number, b"\x04")]
    # A new subject gets the schema of the data, or the one that is given.
    made = rows(frame.select(expr(f"to_avro(struct(id), 'new-value', '{registry.url}')").alias("v")))
    again = spark.createDataFrame([(bytes(r["v"]),) for r in made], "v BINARY").select(from_avro("v", "", options(registry, "new-value")).alias("x")).select("x.id")
    assert [r["id"] for r in rows(again)] == [0, 1, 2] and len(registry.subjects["new-value"]) == 1
    given = frame.select(call_function("to_avro", struct("id"), lit(V2.replace('"string", "default": "none"', '["null", "string"]')), create_map(*[lit(x) for pair in options(registry, "given-value").items() for x in pair])).alias("v"))
    assert bytes(rows(given)[1]["v"])[5:] == b"\x02\0" and len(registry.subjects["given-value"]) == 1
    with pytest.raises(PySparkException) as refused:
        frame.select(expr(f"to_avro(struct(id), 'other-value', '{registry.url}', map('schema.registry.auto.register.schemas', 'false'))")).collect()
    assert refused.value.getCondition() == "FLEUVE_SCHEMA_REGISTRY_REFUSED" and "other-value" in str(refused.value)


def test_basic_authentication_whose_password_no_column_shows(spark, registry):
    registry.add("t-value", V1)
    registry.user_info = "key:secret-word"
    frame = spark.createDataFrame([(value(1, b"\x02"),)], "v BINARY")
    with pytest.raises(PySparkException) as refused:
        frame.select(from_avro("v", "", options(registry))).collect()
    assert refused.value.getCondition() == "FLEUVE_SCHEMA_REGISTRY_REFUSED"
    login = {"confluent.schema.registry.basic.auth.credentials.source": "USER_INFO", "confluent.schema.registry.basic.auth.user.info": registry.user_info}
    read = frame.select(from_avro("v", "", {**options(registry), **login}))
    assert rows(read)[0][read.columns[0]] == {"id": 1} and "secret-word" not in read.columns[0]


def test_what_cannot_be_served_is_refused_by_name(spark, registry):
    frame = spark.createDataFrame([(value(1, b"\x02"),)], "v BINARY")
    registry.schemas.append({"schema": "syntax = ...", "schemaType": "PROTOBUF"})
    for given, word in [({"schema.registry.url": "ftp://x"}, "ftp://x"), ({"schema.registry.subject": "t"}, "schema.registry.url"),
                        ({**options(registry), "schema.registry.ssl.truststore.location": "x"}, "truststore"), ({"schema.registry.url": registry.url}, "subject")]:
        with pytest.raises(PySparkException, match=word):
            frame.select(from_avro("v", "", given)).collect()
    with pytest.raises(PySparkException, match="PROTOBUF"):
        frame.select(from_avro("v", V1, {"schema.registry.url": registry.url})).collect()
    for form, word in [("to_avro(struct(1L AS id), '%s', map('mode', 'FAILFAST'))" % V1, "mode of to_avro"),
                       ("to_avro(struct(1L AS id), '%s', map('avroSchema', 'x'))" % V1, "avroSchema of to_avro"),
                       ("schema_of_avro('%s', map('schema.registry.url', '%s'))" % (V1, registry.url), "schema.registry.url of schema_of_avro")]:
        with pytest.raises(PySparkException, match=word):
            frame.select(expr(form)).collect()


def test_an_answer_without_a_number_is_refused(spark, registry):
    registry.add("t-value", V1)
    answer = registry.reply
    registry.reply = lambda path, body: (lambda status, value: (status, {k: v for k, v in value.items() if k != "id"}))(*answer(path, body))
    for form in ["to_avro(struct(id), 't-value', '%s')", "to_avro(struct(id), 'new-value', '%s')"]:
        with pytest.raises(PySparkException) as refused:
            spark.range(1).select(expr(form % registry.url)).collect()
        assert refused.value.getCondition() == "FLEUVE_SCHEMA_REGISTRY_REFUSED" and registry.url in str(refused.value)


def test_a_registry_that_is_down_fails_the_query_and_the_next_run_goes_on(spark, registry, folder):
    registry.add("t-value", V1)
    source, target, checkpoint = f"{folder}/in", f"{folder}/out", f"{folder}/cp"

    def feed(*ids):
        spark.createDataFrame([(value(1, bytes([2 * i])),) for i in ids], "v BINARY").coalesce(1).write.mode("append").parquet(source)

    def start():
        frame = spark.readStream.schema("v BINARY").parquet(source).select(from_avro("v", V1, {"schema.registry.url": registry.url, "schema.registry.http.connect.timeout.ms": "500"}).alias("x")).select("x.id")
        query = frame.writeStream.format("delta").option("checkpointLocation", checkpoint).trigger(availableNow=True).start(target)
        query.awaitTermination(60)
        return query

    feed(1, 2)
    registry.stop()
    with pytest.raises(PySparkException) as down:
        start()
    assert registry.url in str(down.value) and "cannot be reached" in str(down.value)
    registry.start()
    registry.failures = 1  # one bad answer is no failure
    start()
    feed(3)
    registry.stop()  # what is known is not asked for again
    start()
    registry.start()
    assert sorted(r["id"] for r in rows(spark.read.format("delta").load(target))) == [1, 2, 3]
