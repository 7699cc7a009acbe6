-- What may not stand inside of aggregate functions, their filters and window functions.
-- oracle: spark
SELECT sum(row_number() OVER (ORDER BY x)) FROM VALUES (1) AS t(x);
SELECT sum(sum(x) OVER ()) FROM VALUES (1) AS t(x);
SELECT sum(sum(x)) OVER () FROM VALUES (1) AS t(x);
SELECT max(x) FILTER (WHERE sum(x) > 1) FROM VALUES (1) AS t(x);
SELECT max(x) FILTER (WHERE row_number() OVER (ORDER BY x) > 1) FROM VALUES (1) AS t(x);
SELECT max(x) FILTER (WHERE rand() > 1) FROM VALUES (1) AS t(x);
SELECT max(x) FILTER (WHERE x) FROM VALUES (1) AS t(x);
SELECT max(x) FILTER (WHERE NULL) AS m, max(x) FILTER (WHERE x > 1) AS n FROM VALUES (1), (2) AS t(x);
SELECT lag(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM VALUES (1) AS t(x);
SELECT lead(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM VALUES (1) AS t(x);
SELECT rank() OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM VALUES (1) AS t(x);
SELECT lag(x, y) OVER (ORDER BY x) FROM VALUES (1, 2) AS t(x, y);
SELECT ntile(y) OVER (ORDER BY x) FROM VALUES (1, 2) AS t(x, y);
SELECT lag(x, -1) OVER (ORDER BY x), lead(x, 1, y) OVER (ORDER BY x) FROM VALUES (1, 2), (2, 3) AS t(x, y);
SELECT * FROM VALUES (1) AS t(x) LATERAL VIEW nofn(x) AS y;
SELECT * FROM VALUES (1) AS t(x) LATERAL VIEW abs(x) AS y;
