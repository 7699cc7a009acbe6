# Which functions give columns that may be NULL where their arguments may not.
# oracle: spark
df = spark.range(1).selectExpr("id", "CAST(id AS STRING) AS s", "CAST(id AS DOUBLE) AS d", "DATE '2024-01-01' AS dt")
groups = [
    ["sqrt(d)", "exp(d)", "sin(d)", "atan2(d, d)", "pow(d, d)", "round(d)", "bround(d)", "ceil(d)", "floor(id)", "sign(d)",
     "rint(d)", "degrees(d)", "hypot(d, d)", "abs(d)", "ln(d)", "factorial(1)", "uniform(1, 5, 0)"],
    ["locate('a', s)", "position('a', s)", "url_encode(s)", "url_decode(s)", "luhn_check(s)", "quote(s)", "mask(s)",
     "split_part(s, '.', 1)", "sentences(s)", "encode(s, 'utf-8')", "decode(CAST(s AS BINARY), 'utf-8')", "left(s, 1)",
     "right(s, 1)", "is_valid_utf8(s)", "contains(s, s)", "contains(CAST(s AS BINARY), CAST(s AS BINARY))",
     "s LIKE ANY ('a', 'b')", "s LIKE 'a'", "upper(s)"],
    ["to_number(s, '9')", "try_to_number(s, '9')", "to_char(id, '9')", "to_date(s, 'yyyy')", "to_timestamp(s, 'yyyy')",
     "unix_timestamp(s, 'yyyy')", "to_date(s)", "to_binary(s, 'base64')", "to_binary(s, 'hex')", "try_to_timestamp(s, 'yyyy')"],
    ["to_json(struct(id))", "to_csv(struct(id))", "from_csv(s, 'a INT')", "from_json(s, 'a INT')", "map_keys(map(id, id))",
     "map_values(map(id, id))", "map_contains_key(map(id, id), 1L)", "array_append(array(id), id)", "array_prepend(array(id), id)"],
    ["1.5BD + 2.5BD", "1.5BD * 2.5BD", "1.5BD - 2.5BD", "1.5BD / 2.5BD", "1.5BD % 2.5BD", "CAST(id AS DECIMAL(3,0))",
     "CAST(1.5BD AS DECIMAL(2,0))", "CAST(d AS DECIMAL(3,0))", "CAST(s AS DECIMAL(3,0))", "CAST(d AS INT)", "CAST(id AS INT)"],
]
for group in groups:
    for text in group:
        column = df.selectExpr(text + " AS r").schema[0]
        kind = column.dataType.jsonValue()
        print(text, "|", column.dataType.simpleString(), "|", column.nullable, "|", kind if isinstance(kind, dict) and kind["type"] == "array" else "")
df.selectExpr("stack(1, id)").printSchema()
