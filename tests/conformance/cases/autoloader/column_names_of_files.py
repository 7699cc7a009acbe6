# Names of columns that are doubled, empty or differ only by case: CSV headers, JSON fields and Parquet columns.
# oracle: spec
# auto-loader.md sections 4.1, 6 and 9: CSV names as Spark's own inference gives them; one column for spellings that differ
# by case, the first in (modification time, path) order; other spellings of a Parquet file are rescued.
import pyarrow as pa
import pyarrow.parquet as pq


def run(name, fmt, **options):
    """One availableNow run over `tmp/<name>` into a Delta table; gives the table."""
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", fmt).option(
        "cloudFiles.schemaLocation", tmp + "/schema_" + name).options(**options)
    run_stream(reader.load(tmp + "/" + name).writeStream.format("delta").option("checkpointLocation", tmp + "/cp_" + name)
               .option("mergeSchema", "true").trigger(availableNow=True), tmp + "/out_" + name)
    return spark.read.format("delta").load(tmp + "/out_" + name)


def put(path, text, age):
    """Writes a file that is `age` seconds old."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="") as f:
        f.write(text)
    os.utime(path, (1700000000 - age, 1700000000 - age))


put(tmp + "/doubled/a.csv", "id,amount,amount,\n1,10,20,x\n2,30,40,y\n", 10)
show(run("doubled", "csv"), label="doubled and empty names")
put(tmp + "/lines/a.csv", 'id,text\r\n1,"two\r\nlines"\r\n2,one\r\n', 10)
show(run("lines", "csv", multiLine="true"), label="line breaks within quotes")
put(tmp + "/lines_n/a.csv", 'id,text\n1,"two\r\nlines"\n', 10)
show(run("lines_n", "csv", multiLine="true").selectExpr("id", "replace(text, chr(13), 'CR') AS text"), label="another line break than the file's own stays")
put(tmp + "/spelled/b.json", '{"id": "1", "Name": "x"}\n', 20)
put(tmp + "/spelled/a.json", '{"id": "2", "name": "y"}\n', 10)
table = run("spelled", "json", **{"cloudFiles.schemaEvolutionMode": "rescue", "readerCaseSensitive": "false"})
show(table.select("id", "Name"), label="JSON, the older file's spelling")
print([f.name for f in table.schema])

os.makedirs(tmp + "/parquet")
pq.write_table(pa.table({"id": [1], "fee": [1.5]}), tmp + "/parquet/a.parquet")
os.utime(tmp + "/parquet/a.parquet", (1700000000, 1700000000))
pq.write_table(pa.table({"id": [2], "Fee": [2.5]}), tmp + "/parquet/b.parquet")
table = run("parquet", "parquet", **{"cloudFiles.schemaEvolutionMode": "rescue"})
print([f.name for f in table.schema])
for row in sorted(table.collect(), key=lambda r: r.id):
    rescued = {k: v for k, v in json.loads(row["_rescued_data"] or "{}").items() if k != "_file_path"}
    print(row.id, row.fee, rescued)
