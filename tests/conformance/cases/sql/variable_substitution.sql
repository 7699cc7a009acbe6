-- ${name} in SQL text.
-- oracle: spark
SET conf.test.x = 5;
SET conf.test.y = ${conf.test.x} + 1;
SELECT '${conf.test.x}' AS a, ${conf.test.x} + 1 AS b, '${hiveconf:conf.test.x}' AS c, '${hivevar:conf.test.x}' AS d, '${spark:conf.test.x}' AS e, ${conf.test.y} * 2 AS f;
SELECT '${conf.test.none}' AS a, '${system:conf.none}' AS b, '${env:CONF_TEST_NONE}' AS c, '${other:x}' AS d, '$x {y}' AS e, '${a b}' AS f;
SELECT regexp_replace('abc', '(?<n>b)', '[${n}]') AS r;
SET spark.sql.variable.substitute = false;
SELECT '${conf.test.x}' AS a, regexp_replace('abc', '(?<n>b)', '[${n}]') AS r;
SELECT regexp_replace('abc', 'b', '$2') AS r;
RESET spark.sql.variable.substitute;
SELECT '${conf.test.x}' AS a;
RESET conf.test.x;
RESET conf.test.y;
