-- approx_count_distinct is a sketch: its estimates are Spark's, not the exact counts.
SELECT approx_count_distinct(id * 1, 0.05), approx_count_distinct(id * 7, 0.05D), approx_count_distinct(id * 13, 0.1), approx_count_distinct(id * 1, 0.25), approx_count_distinct(id * 3, 0.02), approx_count_distinct(id * 11, 0.008) FROM range(10);
SELECT approx_count_distinct(id * 1, 0.05), approx_count_distinct(id * 7, 0.05D), approx_count_distinct(id * 13, 0.1), approx_count_distinct(id * 1, 0.25), approx_count_distinct(id * 3, 0.02), approx_count_distinct(id * 11, 0.008) FROM range(1000);
SELECT approx_count_distinct(id * 1, 0.05), approx_count_distinct(id * 7, 0.05D), approx_count_distinct(id * 13, 0.1), approx_count_distinct(id * 1, 0.25), approx_count_distinct(id * 3, 0.02), approx_count_distinct(id * 11, 0.008) FROM range(2000);
SELECT approx_count_distinct(id * 1, 0.05), approx_count_distinct(id * 7, 0.05D), approx_count_distinct(id * 13, 0.1), approx_count_distinct(id * 1, 0.25), approx_count_distinct(id * 3, 0.02), approx_count_distinct(id * 11, 0.008) FROM range(30000);
SELECT id % 3 AS k, approx_count_distinct(id) FROM range(3000) GROUP BY 1 ORDER BY 1;
SELECT approx_count_distinct(cast(id AS decimal(30,2)), 0.02), approx_count_distinct(struct(id, 'x'), 0.02), approx_count_distinct(date_add(DATE '2020-01-01', cast(id AS int)), 0.02), approx_count_distinct(cast(id AS string), 0.02) FROM range(20000);
SELECT approx_count_distinct(a) FROM VALUES (NULL), (array(1)), (array(2)), (array(1)) t(a);
SELECT approx_count_distinct(CASE WHEN id % 2 = 0 THEN cast('nan' AS double) WHEN id % 3 = 0 THEN -0.0D ELSE 0D END) FROM range(10);
SELECT approx_count_distinct(id) FILTER (WHERE id > 500), approx_count_distinct(DISTINCT id), approx_count_distinct(CASE WHEN id < 300 THEN id END) FROM range(1000);
SELECT id, approx_count_distinct(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS n FROM range(5);
SELECT approx_count_distinct(id, 0.5) FROM range(10);
SELECT approx_count_distinct(id, 0) FROM range(10);
SELECT approx_count_distinct(id, NULL) FROM range(10);
SELECT approx_count_distinct(id, 0.05, 3) FROM range(10);
