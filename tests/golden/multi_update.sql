# What assigned expressions of a multi-table UPDATE see: what is assigned before them in the first table; in the others its new row, and not each other.
CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT, v INT);
CREATE TABLE b (id INT PRIMARY KEY, x INT, v INT);
INSERT INTO a VALUES (1, 10, 0, 1), (2, 20, 0, 1);
INSERT INTO b VALUES (1, 5, 1), (2, 6, 1);
UPDATE a JOIN b ON a.id = b.id SET a.x = b.x, a.y = a.x * 2, b.x = a.x + 1;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a STRAIGHT_JOIN b ON a.id = b.id SET a.v = a.v + 1, a.v = a.v + 1;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a JOIN b ON a.id = b.id SET a.v = 0, b.v = a.v;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a JOIN b ON a.id = b.id SET b.v = a.v + 50, a.v = b.v + 7;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a JOIN b ON a.id = b.id SET b.v = a.v + 50, a.v = b.v + 7, b.x = b.v + 1;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a STRAIGHT_JOIN b ON a.id = b.id SET a.v = a.v + 1, b.v = b.v + 1, a.v = a.v + 1, b.v = b.v + 1;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a JOIN b ON a.id = b.id SET a.x = DEFAULT, a.y = a.x, b.x = a.x;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
# A row that several match.
CREATE TABLE m (aid INT, n INT);
INSERT INTO m VALUES (1, 1), (1, 2), (2, 3);
UPDATE a STRAIGHT_JOIN m ON a.id = m.aid SET a.v = a.v + 100, m.n = a.v * 10;
SELECT * FROM a ORDER BY id;
SELECT * FROM m ORDER BY aid, n;
UPDATE a LEFT JOIN b ON a.id = b.id + 1 SET a.x = a.id + 7, b.x = a.x;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
# One table twice.
UPDATE a a1 JOIN a a2 ON a1.id = a2.id SET a1.x = a1.x + 1, a2.x = a1.x + 100;
SELECT * FROM a ORDER BY id;
UPDATE a a1 JOIN a a2 ON a1.id = a2.id SET a1.x = 100, a2.y = a2.x;
SELECT * FROM a ORDER BY id;
UPDATE a a1 JOIN a a2 ON a1.id = a2.id SET a1.x = 50, a1.y = a1.x, a2.v = a1.y;
SELECT * FROM a ORDER BY id;
# Rows that move.
UPDATE a JOIN b ON a.id = b.id SET a.id = a.id + 10, a.y = a.id, b.v = a.id + a.y;
SELECT * FROM a ORDER BY id;
SELECT * FROM b ORDER BY id;
UPDATE a JOIN b ON a.id = b.id + 10 SET a.id = a.id - 10;
# Subqueries.
UPDATE a, b SET a.x = 3, a.y = (SELECT a.x + 1), b.x = (SELECT a.y + 1) WHERE a.id = b.id;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a, b SET a.x = b.id, a.y = a.x + (SELECT MAX(n) FROM m), b.x = (SELECT COUNT(*) FROM m WHERE m.aid = a.x) + (SELECT MIN(n) FROM m WHERE m.aid = b.id) WHERE a.id = b.id;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
UPDATE a, b SET a.x = 2, a.y = a.x IN (SELECT aid FROM m), b.x = EXISTS (SELECT 1 FROM m WHERE aid > a.x) WHERE a.id = b.id;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
# Through views.
CREATE VIEW w AS SELECT v AS vv, x AS xx, id FROM a;
UPDATE w JOIN b ON w.id = b.id SET w.xx = 40 + b.id, w.vv = w.xx + 1, b.x = w.vv + w.xx;
SELECT * FROM a JOIN b USING (id) ORDER BY id;
DROP VIEW w;
DROP TABLE a, b, m;
# Generated columns, timestamps, values that are cut.
CREATE TABLE a (id INT PRIMARY KEY, x INT, g INT AS (x + 1), t TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, s VARCHAR(3));
CREATE TABLE b (id INT PRIMARY KEY, x INT, t TIMESTAMP NULL, s VARCHAR(30));
INSERT INTO a (id, x) VALUES (1, 10), (2, 20);
INSERT INTO b (id, x) VALUES (1, 5), (2, 6);
UPDATE a JOIN b ON a.id = b.id SET a.x = b.x, b.x = a.g, b.t = a.t, a.s = b.x, b.s = CONCAT(a.s, '!');
SELECT id, x, g, t IS NULL, s FROM a ORDER BY id;
SELECT id, x, t IS NULL, s FROM b ORDER BY id;
SET time_zone = '+05:00';
UPDATE a JOIN b ON a.id = b.id SET a.t = '2020-01-01 00:30:00', a.s = HOUR(a.t), b.t = a.t;
SELECT * FROM a ORDER BY id;
SELECT * FROM b ORDER BY id;
SET time_zone = DEFAULT;
UPDATE IGNORE a JOIN b ON a.id = b.id SET a.s = 'abcdef', b.s = a.s;
SHOW WARNINGS;
SELECT id, s FROM a ORDER BY id;
SELECT id, s FROM b ORDER BY id;
UPDATE a JOIN b ON a.id = b.id SET a.s = '1x', b.x = a.s + 1;
UPDATE a JOIN b ON a.id = b.id SET a.s = '12', b.x = a.s + 1;
SELECT id, s FROM a ORDER BY id;
SELECT id, x FROM b ORDER BY id;
DROP TABLE a, b;
