# Partition folders of files: types inferred from their names, folders that do not fit, schemas given, basePath.
def tree(root, folders):
    for folder in folders:
        write_lines(tmp + "/" + root + "/" + folder + "/a.json", ['{"id": 1}'])
    return tmp + "/" + root


for label, folders in {
    "int": ["p=1", "p=-2"], "long": ["p=1", "p=99999999999"], "leading zeros": ["p=01", "p=02"],
    "decimal": ["p=1", "p=99999999999999999999"], "long and decimal": ["p=99999999999", "p=99999999999999999999"],
    "exponent": ["p=1e3"], "double": ["p=1", "p=1.5"], "double and long": ["p=1.5", "p=99999999999"],
    "double and decimal": ["p=1.5", "p=99999999999999999999"], "numbers that name their type": ["p=1d", "p=2f"],
    "text": ["p=1", "p=x"], "date": ["p=2020-01-01"], "timestamp": ["p=2020-01-01 00%3A00%3A01"],
    "date and timestamp": ["p=2020-01-01", "p=2020-01-02 00%3A00%3A01"], "date and text": ["p=2020-01-01", "p=x"],
    "boolean": ["p=true"], "none": ["p=1", "p=__HIVE_DEFAULT_PARTITION__"], "escaped": ["p=a%20b", "p=c%2Fd"],
    "two": ["p=1/q=a", "p=2/q=b"],
}.items():
    show(spark.read.json(tree(label.replace(" ", "_"), folders)), label=label)
error(lambda: spark.read.json(tree("depth", ["p=1/q=a", "p=2"])), "another depth")
error(lambda: spark.read.json(tree("names", ["p=1", "q=2"])), "another name")
error(lambda: spark.read.json(tree("plain", ["p=1", "x"])), "a folder that is no partition")
error(lambda: spark.read.json(tree("deeper", ["p=1", "p=2/x"])), "one below a partition")
error(lambda: spark.readStream.schema("id bigint").json(tmp + "/plain").schema, "a stream")
error(lambda: spark.read.json(tmp + "/two/p=*"), "a pattern without basePath")
error(lambda: spark.read.option("basePath", tmp + "/nowhere").json(tmp + "/two"), "basePath that is none")
show(spark.read.option("basePath", tmp + "/two").json(tmp + "/two/p=*"), label="basePath")
write_lines(tmp + "/int/b.json", ['{"id": 2}'])
show(spark.read.json(tmp + "/int"), label="a file in the root")
show(spark.read.schema("p string, id int").json(tmp + "/long"), label="schema")
show(spark.read.json(tmp + "/two").filter("p = 1").select("q"), label="filter")
show(spark.read.json(tmp + "/deeper"), label="one below a partition")
