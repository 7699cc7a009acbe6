-- Names of columns where Spark shows what it put in the place of what was written.
-- oracle: spark
SELECT id > 1.5, id >= 1.5, id < 1.5, id <= 1.5, 1.5 > id, 1.5 >= id, 1.5 < id, 1.5 <= id FROM range(3);
SELECT id > -1.5, id >= -1.5, id < -1.5, id <= -1.5, id > 2.0, id = 1.5, id <=> 1.5, id BETWEEN 0.5 AND 1.5 FROM range(3);
SELECT x < 1e30BD, x > 1e30BD, x >= -1e30BD, 1e30BD > x FROM VALUES (1), (NULL) AS t(x);
SELECT 2 > 1.1, 1Y / 1.5BD, 1S / 1.5BD, 1L + 1.5BD;
SELECT datepart('YEAR', DATE '2024-01-02'), date_part('YEAR', DATE '2024-01-02'), extract(YEAR FROM DATE '2024-01-02');
SELECT current_database(), current_schema(), random(0), rand(0), 'a_b' ILIKE 'A/_B' ESCAPE '/', 'a_b' LIKE 'a/_b' ESCAPE '/';
SELECT to_char(DATE '2024-01-02', 'y'), to_char(X'41', 'hex'), to_char(X'41', 'base64'), to_char(X'41', 'utf-8'), to_char(5, '9');
SELECT to_varchar(DATE '2024-01-02', 'y'), to_varchar(X'41', 'hex'), to_varchar(X'41', 'base64'), to_varchar(X'41', 'utf-8'), to_varchar(5, '9');
SELECT string_agg(x), string_agg(x, ','), string_agg(x, ',') WITHIN GROUP (ORDER BY x), listagg(x, ',') WITHIN GROUP (ORDER BY x DESC) FROM VALUES ('a'), ('b') AS t(x);
SELECT timestampadd(month, 1, TIMESTAMP '2024-01-01 00:00:00'), timestampdiff(Hour, TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 05:00:00'), date_add(week, 1, DATE '2024-01-01');
SELECT zip_with(array(1), array('a'), (x, y) -> (y, x)), transform(array(1), x -> (x, x + 1));
SELECT try_make_timestamp(2014, 12, 28, 6, 30, 45.887, 'CET'), make_timestamp(2014, 12, 28, 6, 30, 45.887, 'CET'), make_timestamp(DATE '2014-12-28'), try_make_timestamp(DATE '2014-12-28');
SELECT btrim(encode('SSparkSQLS', 'utf-8'), encode('SL', 'utf-8')) AS a, try_to_binary('abc', 'invalidFormat') AS b, uuid(123) IS NOT NULL AS c, randstr(16, 3) AS d;
