-- TIME is known and not supported.
-- oracle: spark
SELECT CAST('01:02:03' AS TIME) AS t;
SELECT try_cast('01:02:03' AS TIME(3)) AS t;
SELECT make_time(1, 2, 3) AS t;
SELECT to_time('01:02:03') AS t;
SELECT try_to_time('x') AS t;
SELECT hour(TIME '01:02:03') AS h;
