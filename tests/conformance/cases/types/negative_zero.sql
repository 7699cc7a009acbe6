-- -0.0 in keys of maps, sets of array elements, JSON and comparisons.
-- oracle: spark
SELECT map(-0.0D, 1) AS a, map_from_arrays(array(-0.0D), array(1)) AS b, map_from_entries(array(struct(-0.0F, 1))) AS c, map_concat(map(-0.0D, 1), map(1D, 2)) AS d, transform_keys(map(1, 2), (k, v) -> -0.0D) AS e;
SELECT map(0.0D, 'a', 1D, 'b')[-0.0D] AS a, map_contains_key(map(0.0D, 1), -0.0D) AS b, element_at(map(-0.0D, 1), 0.0D) AS c;
SELECT map(0.0D, 'a', -0.0D, 'b') AS m;
SELECT array_distinct(array(0.0D, -0.0D, 0.0D)) AS a, array_union(array(0.0D), array(-0.0D)) AS b, array_except(array(0.0D, 1D), array(-0.0D)) AS c, array_intersect(array(0.0D, 1D), array(-0.0D, 1D)) AS d, arrays_overlap(array(0.0D), array(-0.0D)) AS e;
SELECT array_distinct(array(0.0F, -0.0F)) AS a, array_union(array(-0.0F), array(0.0F)) AS b, array_except(array(-0.0F, 1F), array(0.0F)) AS c;
SELECT array_contains(array(0.0D), -0.0D) AS a, array_position(array(0.0D), -0.0D) AS b, array_remove(array(0.0D), -0.0D) AS c, 0.0D = -0.0D AS d, 0.0D <=> -0.0D AS e;
SELECT array_distinct(array(double('nan'), double('nan'))) AS a, arrays_overlap(array(double('nan')), array(double('nan'))) AS b, array_union(array(double('nan')), array(double('nan'))) AS c;
SELECT from_json('{"a":-0,"b":-0.0,"c":-0e1}', 'a DOUBLE, b DOUBLE, c FLOAT') AS j;
SELECT x, count(*) AS n FROM VALUES (0.0D), (-0.0D), (double('nan')), (double('nan')), (NULL) AS t(x) GROUP BY x;
