# df.stat.corr and cov with NULL, one row and none.
# oracle: spark
for data in [[], [(1, 2.0)], [(1, 2.0), (2, 4.0)], [(1, None), (2, 3.0)], [(1, None), (2, 3.0), (3, 5.0), (3, 7.0)]]:
    df = spark.createDataFrame(data, "a INT, b DOUBLE")
    print(len(data), canon(df.stat.corr("a", "b")), canon(df.stat.cov("a", "b")), canon(df.corr("b", "a")), rows(df.selectExpr("covar_samp(a, b)")))
error(lambda: df.stat.corr("a", "zz"))
error(lambda: spark.createDataFrame([("x", 1)], "s STRING, a INT").stat.cov("s", "a"))
