# A writer in Python: rows and Arrow batches, overwrite, commit messages, abort.
import re
from dataclasses import dataclass
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage


@dataclass
class Message(WriterCommitMessage):
    count: int
    text: str = ""


def note(path, line):
    with open(path, "a") as f:
        f.write(line + "\n")


class Writer(DataSourceWriter):
    def __init__(self, options, schema, overwrite):
        self.path, self.fail = options["file"], options.get("fail")
        self.seen = 0
        note(self.path, "writer overwrite=%s %s" % (overwrite, schema.simpleString()))
        if self.fail == "init":
            raise ValueError("init")

    def write(self, iterator):
        lines = []
        for row in iterator:
            if self.fail == "write":
                raise ValueError("broken at %s" % row[0])
            lines.append(repr(row))
            self.seen += 1
        if self.fail == "message":
            return 3
        if self.fail == "none":
            return None
        return Message(len(lines), " ".join(sorted(lines)))

    def commit(self, messages):
        note(self.path, "commit %d %s seen=%d" % (sum(m.count for m in messages if m), " ".join(sorted(m.text for m in messages if m)).strip(), self.seen))
        if self.fail == "commit":
            raise ValueError("commit")

    def abort(self, messages):
        note(self.path, "abort %s" % [m for m in messages if m])
        if self.fail == "abort":
            raise ValueError("abort")


class ArrowWriter(DataSourceArrowWriter):
    def __init__(self, path):
        self.path = path

    def write(self, iterator):
        total, names, types = 0, None, None
        for batch in iterator:
            total += batch.num_rows
            names, types = batch.schema.names, [str(t) for t in batch.schema.types]
        return Message(total, "%s %s" % (names, types))

    def commit(self, messages):
        note(self.path, "arrow commit %d %s" % (sum(m.count for m in messages), sorted({m.text for m in messages if m.count})))


class Sink(DataSource):
    @classmethod
    def name(cls):
        return "conf_sink"

    def schema(self):
        return "id bigint"

    def writer(self, schema, overwrite):
        if self.options.get("arrow"):
            return ArrowWriter(self.options["file"])
        if self.options.get("fail") == "type":
            return 5
        return Writer(self.options, schema, overwrite)


spark.dataSource.register(Sink)
def failing(action, label):
    print("#", label)
    try:
        action()
        print("NO ERROR")
    except Exception as e:
        text = str(e)
        conditions = [c for c in re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", text)]
        python = re.findall(r"^([\w.]*(?:Error|Exception)): (.*)$", text, re.M)
        print(list(dict.fromkeys(conditions)), python[-1:] if python else text.split("\n")[0][-150:] if not conditions else "")


df = spark.range(5).selectExpr("id", "cast(id as string) as s").coalesce(1)


def save(mode, frame=df, path=None, **options):
    target = tmp + "/out"
    writer = frame.write.format("conf_sink").options(file=target, **options)
    if mode:
        writer = writer.mode(mode)
    writer.save(path) if path else writer.save()


def told(label):
    print("#", label)
    if os.path.exists(tmp + "/out"):
        print(open(tmp + "/out").read().rstrip())
        os.remove(tmp + "/out")


save("append")
told("append")
save("overwrite")
told("overwrite")
save("append", path="/some/place")
told("path")
save("append", df.where("id > 100"))
told("empty")
save("append", arrow="yes")
told("arrow")
for mode in (None, "error", "ignore"):
    error(lambda: save(mode), label=str(mode), message=True)
    told(mode)
for fail in ("init", "write", "message", "none", "commit", "abort", "type"):
    failing(lambda: save("append", fail=fail), fail)
    told(fail)
error(lambda: save("append", df.selectExpr("id", "1 div (id - 3) as x")), label="query fails")
told("query fails")
error(lambda: df.write.format("conf_sink").option("file", tmp + "/out").partitionBy("s").mode("append").save(), label="partitionBy", message=True)
told("partitionBy")
