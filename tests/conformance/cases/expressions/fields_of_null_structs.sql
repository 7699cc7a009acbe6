SELECT s.a + 1 FROM (SELECT CAST(NULL AS struct<a: int>) AS s);

SELECT upper(from_json(NULL, 'a string').a), from_json(CAST(NULL AS STRING), 'b struct<c: array<int>>').b.c[0] + 1;

SELECT s.k.b || 'x', length(s.k.b), s.k.m['z'] * 2 FROM (SELECT CAST(NULL AS struct<k: struct<b: string, m: map<string, int>>>) AS s);

SELECT coalesce(s.t, timestamp'2024-01-01 00:00:00'), s.d - interval 1 day, s.n / 2 FROM (SELECT CAST(NULL AS struct<t: timestamp, d: date, n: decimal(10, 2)>) AS s);

SELECT named_struct('a', CAST(NULL AS struct<b: int>)).a.b % 2, if(true, CAST(NULL AS struct<b: int>), named_struct('b', 1)).b + 1;

SELECT s.a IS NULL, s.a = 1, s.a IN (1, 2), CASE WHEN s.a > 1 THEN 'x' ELSE 'y' END FROM (SELECT CAST(NULL AS struct<a: int>) AS s);

SELECT sum(s.a + id), count(s.a) FROM (SELECT id, CAST(NULL AS struct<a: int>) AS s FROM range(3));

SELECT max(session_window.end), count(*) FROM (SELECT session_window, count(*) FROM (SELECT timestamp'2024-01-01 00:00:00' AS t) GROUP BY session_window(t, '-1 hour'));

SELECT window.end + interval 1 day, count(*) FROM (SELECT CAST(NULL AS timestamp) AS t) GROUP BY window(t, '1 hour');

SELECT transform(array(1, 2), x -> x + s.a) FROM (SELECT CAST(NULL AS struct<a: int>) AS s);
