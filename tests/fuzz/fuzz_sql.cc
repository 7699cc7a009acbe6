#include "sql/parser.h"
#include "tests/fuzz/fuzzer.h"

const char* const kSeeds[] = {
    "WITH c AS (SELECT a, count(*) AS n FROM t WHERE b IN (1, 2) GROUP BY a HAVING n > 1) SELECT * FROM c JOIN d USING "
    "(a) ORDER BY 1 LIMIT 3",
    "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "CREATE TABLE IF NOT EXISTS d.t (a INT NOT NULL, b STRING) USING delta PARTITIONED BY (b) TBLPROPERTIES ('k'='v')",
    "SELECT CASE WHEN x > 1 THEN 'a;b' ELSE \"c\" END, transform(arr, x -> x + 1), CAST(1 AS DECIMAL(3,1))[0] -- c\n;",
    nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fleuve::sql::ParseStatements(AsText(data, size));
  (void)fleuve::sql::ParseExpression(AsText(data, size));
  return 0;
}
