-- Names of columns that are subqueries: the columns of the query around them that they use.
-- oracle: spark
SELECT (SELECT 1), EXISTS (SELECT 1), 1 IN (SELECT 1);
SELECT (SELECT y FROM VALUES (1) AS u(y) WHERE y = x) FROM VALUES (1), (2) AS t(x);
SELECT (SELECT count(y) FROM VALUES (1) AS u(y) WHERE y > x) FROM VALUES (1), (2) AS t(x);
SELECT (SELECT y FROM VALUES (1) AS u(y) WHERE y = x AND y < z + x) FROM VALUES (1, 5) AS t(x, z);
SELECT (SELECT y FROM VALUES (1) AS u(y) WHERE y = t.x + z) FROM VALUES (1, 5) AS t(x, z);
SELECT (SELECT x), x + (SELECT x) FROM VALUES (1) AS t(x);
SELECT EXISTS (SELECT 1 FROM VALUES (1) AS u(y) WHERE y = x), x IN (SELECT y FROM VALUES (1) AS u(y) WHERE y = x) FROM VALUES (1), (2) AS t(x);
