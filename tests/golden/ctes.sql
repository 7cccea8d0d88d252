# A common table expression that MySQL materializes is evaluated once for all who name it; one that it merges is evaluated for each.
CREATE TABLE t (id INT PRIMARY KEY, g INT, s VARCHAR(10));
INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 2, 'd');
# Merged: it only chooses rows and columns.
WITH c AS (SELECT id, RAND() r FROM t) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, UUID() r FROM t WHERE id > 1) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, UUID() r FROM t ORDER BY id) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, RAND() r FROM (SELECT DISTINCT id FROM t) d) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT * FROM (SELECT DISTINCT id, UUID() r FROM t) d) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
# Materialized: DISTINCT, LIMIT, HAVING, groups, windows, UNION, no table, a subquery that reads the row.
WITH c AS (SELECT DISTINCT id, UUID() r FROM t) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, RAND() r FROM t LIMIT 3) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, UUID() r FROM t HAVING id > 0) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, MAX(RAND()) r FROM t GROUP BY id) SELECT COUNT(*), SUM(a.r = b.r) FROM c a LEFT JOIN c b USING (id);
WITH c AS (SELECT COUNT(*) n, UUID() u FROM t) SELECT a.n, a.u = b.u FROM c a, c b;
WITH c AS (SELECT id, ROW_NUMBER() OVER (ORDER BY id) k, RAND() r FROM t) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT id, RAND() r FROM t UNION ALL SELECT id + 10, RAND() FROM t) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH c AS (SELECT RAND() r) SELECT SUM(a.r = b.r) FROM c a, c b;
WITH c AS (SELECT id, RAND() r, (SELECT MAX(g) FROM t x WHERE x.id = t.id) m FROM t) SELECT COUNT(*), SUM(a.r = b.r) FROM c a JOIN c b USING (id);
WITH RECURSIVE r AS (SELECT 1 i, UUID() u UNION ALL SELECT i + 1, UUID() FROM r WHERE i < 5) SELECT COUNT(*), SUM(a.u = b.u) FROM r a JOIN r b USING (i);
# And what assigns variables.
SET @n = 0;
WITH c AS (SELECT id, (@n := @n + 1) m FROM t) SELECT COUNT(*), SUM(a.m = b.m) FROM c a JOIN c b USING (id);
SELECT @n;
# In subqueries, once for all rows.
SET @n = 0;
WITH c AS (SELECT g, SUM(id) s, MAX(@n := @n + 1) m FROM t GROUP BY g) SELECT s, m FROM c WHERE s = (SELECT MAX(s) FROM c);
SELECT @n;
SET @n = 0;
WITH c AS (SELECT DISTINCT id, (@n := @n + 1) m FROM t) SELECT id, (SELECT SUM(m) FROM c WHERE c.id <= t.id) x FROM t ORDER BY id;
SELECT @n;
SET @n = 0;
SELECT id, (WITH c AS (SELECT DISTINCT id, (@n := @n + 1) m FROM t) SELECT SUM(a.m = b.m) FROM c a JOIN c b USING (id) WHERE a.id <= t.id) x FROM t ORDER BY id;
SELECT @n;
SET @n = 0;
WITH c AS (SELECT id, (@n := @n + 1) m FROM t WHERE id < 4) SELECT id, (SELECT m FROM c WHERE c.id = t.id) m, EXISTS (SELECT 1 FROM c WHERE c.m = t.id) e FROM t ORDER BY id;
SELECT @n;
SET @n = 0;
WITH c AS (SELECT MAX(@n := @n + 1) m FROM t) SELECT m, (SELECT m FROM c) k, m IN (SELECT m FROM c) i FROM c;
SELECT @n;
WITH c AS (SELECT DISTINCT id, UUID() u FROM t) SELECT COUNT(*) FROM c WHERE u IN (SELECT u FROM c);
WITH c AS (SELECT DISTINCT id, UUID() u FROM t) SELECT COUNT(*) FROM c WHERE u NOT IN (SELECT u FROM c WHERE id > 3);
# In unions, derived tables, recursions and each other.
WITH c AS (SELECT DISTINCT id, UUID() u FROM t) SELECT COUNT(*), COUNT(DISTINCT u) FROM (SELECT u FROM c UNION ALL SELECT u FROM c) x;
WITH c AS (SELECT DISTINCT id, UUID() u FROM t) SELECT COUNT(*) FROM (SELECT u FROM c UNION SELECT u FROM c) x;
WITH c AS (SELECT DISTINCT id, UUID() u FROM t), d AS (SELECT id, u FROM c) SELECT COUNT(*), SUM(a.u = b.u) FROM d a JOIN d b USING (id);
WITH c AS (SELECT DISTINCT id, UUID() u FROM t), d AS (SELECT a.id, a.u, b.u v, UUID() w FROM c a JOIN c b USING (id) LIMIT 100) SELECT COUNT(*), SUM(x.u = y.u), SUM(x.u = x.v), SUM(x.w = y.w), SUM(c.u = x.u) FROM d x JOIN d y USING (id) JOIN c USING (id);
SET @n = 0;
WITH RECURSIVE c AS (SELECT DISTINCT g, (@n := @n + 1) m FROM t), r AS (SELECT CAST(1 AS SIGNED) i, CAST(0 AS SIGNED) k UNION ALL SELECT i + 1, m FROM r JOIN c ON c.g = r.i) SELECT COUNT(*) FROM r;
SELECT @n;
WITH c AS (SELECT DISTINCT g, UUID() u FROM t) SELECT COUNT(*), SUM(a.u = b.u) FROM c a LEFT JOIN c b ON a.g = b.g AND b.g = 1;
# Views: each mention of one has rows of its own, and in it they are shared.
CREATE VIEW v1 AS SELECT DISTINCT id, UUID() u FROM t;
WITH c AS (SELECT * FROM v1) SELECT COUNT(*), SUM(a.u = b.u) FROM c a JOIN c b USING (id);
SELECT COUNT(*), SUM(a.u = b.u) FROM v1 a JOIN v1 b USING (id);
WITH c AS (SELECT DISTINCT * FROM v1) SELECT COUNT(*), SUM(a.u = b.u) FROM c a JOIN c b USING (id);
CREATE VIEW v2 AS WITH c AS (SELECT DISTINCT id, UUID() u FROM t) SELECT a.id, a.u, b.u v FROM c a JOIN c b USING (id);
SELECT COUNT(*), SUM(u = v) FROM v2;
SELECT COUNT(*), SUM(a.u = a.v), SUM(a.u = b.u) FROM v2 a JOIN v2 b USING (id);
# Statements that change rows.
CREATE TABLE o (id INT PRIMARY KEY, u VARCHAR(40), v VARCHAR(40));
INSERT INTO o WITH c AS (SELECT DISTINCT id, UUID() u FROM t) SELECT a.id, a.u, b.u FROM c a JOIN c b USING (id);
SELECT COUNT(*), SUM(u = v) FROM o;
WITH c AS (SELECT DISTINCT id, UUID() u FROM t) UPDATE o JOIN c a USING (id) JOIN c b USING (id) SET o.u = a.u, o.v = b.u;
SELECT COUNT(*), SUM(u = v) FROM o;
SET @n = 0;
WITH c AS (SELECT DISTINCT id, (@n := @n + 1) m FROM t) UPDATE o SET u = (SELECT m FROM c WHERE c.id = o.id), v = (SELECT m FROM c WHERE c.id = o.id);
SELECT * FROM o ORDER BY id;
SELECT @n;
SET @n = 0;
WITH c AS (SELECT DISTINCT id, (@n := @n + 1) m FROM t) DELETE FROM o WHERE id = (SELECT MAX(m) FROM c) OR id IN (SELECT m - 1 FROM c WHERE m = 2);
SELECT id FROM o ORDER BY id;
SELECT @n;
REPLACE INTO o WITH c AS (SELECT id, UUID() u FROM t LIMIT 2) SELECT a.id + 20, a.u, b.u FROM c a JOIN c b USING (id);
SELECT id, u = v FROM o WHERE id > 20 ORDER BY id;
# Prepared statements evaluate it anew.
PREPARE p FROM 'WITH c AS (SELECT DISTINCT id, (@n := @n + 1) m FROM t WHERE id > ?) SELECT COUNT(*), SUM(a.m = b.m), MAX(a.m), SUM(a.id > ?) FROM c a JOIN c b USING (id) WHERE a.id <= ?';
SET @n = 0, @one = 1, @two = 2, @three = 3, @four = 4;
EXECUTE p USING @one, @two, @four;
EXECUTE p USING @two, @two, @four;
EXECUTE p USING @one, @two, @three;
SELECT @n;
DEALLOCATE PREPARE p;
# The rows are those of the query.
WITH c (x, y) AS (SELECT g, COUNT(*) FROM t GROUP BY g) SELECT a.x, b.y FROM c a JOIN c b ON a.x = b.y ORDER BY 1, 2;
WITH c AS (SELECT g, COUNT(*) n FROM t GROUP BY g) SELECT g, n, AVG(n) FROM c GROUP BY g ORDER BY g;
WITH c AS (SELECT g, SUM(id) s FROM t GROUP BY g) SELECT * FROM (SELECT g, s FROM c WHERE g = 1 UNION ALL SELECT s, g FROM c WHERE g = 2) x ORDER BY 1;
WITH c AS (SELECT 1 a, 'x' b UNION ALL SELECT NULL, 'y') SELECT * FROM c x LEFT JOIN c y USING (a) ORDER BY x.b;
WITH c AS (SELECT s, COUNT(*) n FROM t GROUP BY s ORDER BY s DESC LIMIT 3) SELECT x.s, y.s FROM c x JOIN c y ON x.s > y.s ORDER BY 1, 2;
WITH c AS (SELECT DISTINCT g, NULL z FROM t) SELECT COUNT(*), COUNT(a.z), MAX(b.g) FROM c a LEFT JOIN c b ON a.g < b.g;
WITH c AS (SELECT id, g FROM t WHERE s > 'b' LIMIT 10) SELECT COUNT(*), (SELECT COUNT(*) FROM c WHERE g = 7) z FROM c WHERE id NOT IN (SELECT g FROM c);
WITH c AS (SELECT id, g FROM t LIMIT 0) SELECT COUNT(*), (SELECT COUNT(*) FROM c) n, EXISTS (SELECT * FROM c) e FROM c;
WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 10) SELECT COUNT(*), SUM(a.i * b.i) FROM r a JOIN r b ON a.i <= b.i;
SELECT g, (WITH c AS (SELECT COUNT(*) n FROM t) SELECT n FROM c) x, COUNT(*) FROM t GROUP BY g, (WITH c AS (SELECT COUNT(*) n FROM t) SELECT n FROM c) ORDER BY g;
WITH c AS (SELECT DISTINCT g FROM t) SELECT COUNT(*) FROM c a JOIN c b JOIN c d JOIN c e WHERE a.g <= b.g AND b.g <= d.g AND d.g <= e.g;
# In statements that change what it reads, in subqueries of them, and in its own and others' subqueries.
CREATE TABLE x (id INT PRIMARY KEY, g INT, v INT);
INSERT INTO x VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40), (5, 3, 50);
WITH c AS (SELECT g, SUM(v) s FROM x GROUP BY g) UPDATE x JOIN c a ON a.g = x.g JOIN c b ON b.g = a.g SET x.v = a.s + b.s;
WITH c AS (SELECT g, SUM(v) s FROM x GROUP BY g) UPDATE x SET v = (SELECT s FROM c WHERE c.g = x.g) WHERE g IN (SELECT g FROM c WHERE s > 100);
SELECT * FROM x;
WITH c AS (SELECT DISTINCT g FROM x) DELETE x FROM x JOIN c a USING (g) WHERE a.g = (SELECT MAX(g) FROM c);
INSERT INTO x WITH c AS (SELECT MAX(id) m, SUM(v) s FROM x) SELECT a.m + 10, 7, b.s FROM c a, c b UNION ALL SELECT m + 20, 8, s FROM c;
SELECT * FROM x;
UPDATE x SET v = (WITH c AS (SELECT g, COUNT(*) n FROM t GROUP BY g) SELECT COUNT(*) FROM c a JOIN c b USING (g) WHERE a.g >= x.id) WHERE g IN (WITH c AS (SELECT DISTINCT g FROM t) SELECT a.g FROM c a JOIN c b USING (g));
SELECT * FROM x;
WITH c AS (SELECT g, v / 3 q FROM x LIMIT 100) SELECT SUM(a.q), SUM(b.q), (SELECT SUM(q) FROM c) FROM c a JOIN c b USING (g);
WITH a AS (SELECT DISTINCT g FROM x) SELECT (WITH b AS (SELECT COUNT(*) n FROM a, a z) SELECT p.n + q.n FROM b p, b q) n, g FROM a ORDER BY g;
WITH c AS (SELECT DISTINCT g FROM x) SELECT g, (SELECT COUNT(*) FROM c p WHERE p.g <= c.g AND EXISTS (SELECT 1 FROM c q WHERE q.g = p.g)) k FROM c ORDER BY g;
WITH c AS (SELECT g, MAX(v) v FROM x GROUP BY g) SELECT STRAIGHT_JOIN x.id, a.v, b.v FROM x LEFT JOIN c a ON a.g = x.g AND a.v > 60 LEFT JOIN c b ON b.v = x.v ORDER BY 1, 2, 3;
WITH c AS (SELECT DISTINCT g FROM x) SELECT x.id FROM x WHERE g >= ALL (SELECT g FROM c WHERE g <= x.id) AND g <> ANY (SELECT g FROM c) ORDER BY id;
WITH c (a, b) AS (SELECT DISTINCT g, v FROM x), d (b, a) AS (SELECT * FROM c LIMIT 100) SELECT d.a, d.b, c.a, c.b FROM c JOIN d ON c.a = d.b AND c.b = d.a ORDER BY 1, 2;
WITH c AS (SELECT DISTINCT g, CAST(v AS SIGNED) v FROM x) SELECT * FROM (SELECT g, v FROM c UNION ALL SELECT v, 'abc' FROM c) z ORDER BY 1, 2;
WITH c AS (SELECT g, RAND(3) r FROM x GROUP BY g) SELECT g, r = (SELECT r FROM c d WHERE d.g = c.g) FROM c ORDER BY g;
WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r WHERE i < 5), s AS (SELECT a.i, b.i j FROM r a JOIN r b ON b.i = a.i + 1), z AS (SELECT 1 k UNION ALL SELECT j FROM z JOIN s ON s.i = z.k) SELECT * FROM z a JOIN z b USING (k) ORDER BY 1;
WITH c AS (SELECT g, n FROM (SELECT g, COUNT(*) n FROM x GROUP BY g WITH ROLLUP) z LIMIT 9) SELECT * FROM c a LEFT JOIN c b USING (g) ORDER BY 1, 2;
DROP VIEW v1, v2;
DROP TABLE t, o, x;
