# Options of file readers with values that they cannot have, limits of CSV, encodings, headers that do not fit.
def put(name, text):
    os.makedirs(os.path.dirname(tmp + "/" + name), exist_ok=True)
    with open(tmp + "/" + name, "w", newline="") as f:
        f.write(text)
    return tmp + "/" + name.split("/")[0]


csv = put("csv/a.csv", "id,name,v\n1,a,1.5\n2,b,2.5\n")
json_lines = put("json/a.json", '{"a": 1}\n')
for name in ("header", "inferSchema", "ignoreLeadingWhiteSpace", "enforceSchema", "preferDate", "columnPruning", "escapeQuotes", "multiLine"):
    error(lambda: spark.read.option(name, "maybe").csv(csv), name)
for name in ("maxColumns", "maxCharsPerColumn"):
    error(lambda: spark.read.option(name, "many").csv(csv), name)
for name in ("quote", "escape", "comment", "charToEscapeQuoteEscaping"):
    error(lambda: spark.read.schema("a string").option(name, "##").csv(csv), name)
error(lambda: spark.read.option("samplingRatio", "much").option("inferSchema", True).csv(csv), "samplingRatio")
error(lambda: spark.read.option("sep", "").csv(csv), "sep")
error(lambda: spark.read.option("encoding", "nope").csv(csv), "encoding")
error(lambda: spark.read.schema("a int").option("encoding", "nope").json(json_lines), "encoding of JSON")
for name in ("primitivesAsString", "allowComments", "multiLine", "dropFieldIfAllNull"):
    error(lambda: spark.read.option(name, "maybe").json(json_lines), name)
error(lambda: spark.read.option("samplingRatio", "much").json(json_lines), "samplingRatio of JSON")
error(lambda: spark.read.schema("a date").option("timeZone", "Nowhere").json(json_lines), "timeZone")
error(lambda: spark.read.option("recursiveFileLookup", "maybe").text(csv), "recursiveFileLookup")
error(lambda: spark.read.option("modifiedAfter", "yesterday").text(csv), "modifiedAfter")
error(lambda: spark.read.schema("a int, b string, c double").option("header", True).option("enforceSchema", False).csv(csv), "header")
error(lambda: spark.read.schema("a int, b string, c double").option("maxColumns", 2).csv(csv), "too many columns")
error(lambda: spark.read.schema("a string, b string, c string").option("maxCharsPerColumn", 2).csv(csv), "too long a value")
error(lambda: spark.read.schema("a void, b int").csv(csv), "a column of no type")
error(lambda: spark.read.schema("a char(3)").csv(csv), "CHAR")
error(lambda: spark.read.schema("a struct<b: varchar(3)>").json(json_lines), "VARCHAR inside")
error(lambda: spark.sql("SELECT from_json('{}', 'a char(3)')"), "CHAR in from_json")
