# Ranges of an index on prefixes meet where their bounds share one: a row is found, counted and changed once.
CREATE TABLE p (id INT PRIMARY KEY, c VARCHAR(12), n INT, KEY k (c(1)));
INSERT INTO p VALUES (1, 'ba', 1), (2, 'b', 2), (3, 'c', 3), (4, 'bb', 4), (5, 'a', 5), (6, NULL, 6);
SELECT id FROM p FORCE INDEX (k) WHERE (c, n) > ('b', 1) ORDER BY id;
SELECT id FROM p FORCE INDEX (k) WHERE c > 'b' OR c = 'b' ORDER BY id;
SELECT id FROM p FORCE INDEX (k) WHERE c NOT BETWEEN 'bb' AND 'ba' ORDER BY id;
SELECT COUNT(*), SUM(n) FROM p FORCE INDEX (k) WHERE c < 'ba' OR c > 'ba';
SELECT id FROM p FORCE INDEX (k) WHERE c IS NULL OR c < 'b' ORDER BY id;
UPDATE p FORCE INDEX (k) SET n = n + 10 WHERE c < 'ba' OR c > 'ba';
SELECT * FROM p ORDER BY id;
CREATE TABLE d (a INT, c VARBINARY(12), n INT PRIMARY KEY, KEY k (a, c(1) DESC));
INSERT INTO d SELECT 1, c, n FROM p;
SELECT n FROM d FORCE INDEX (k) WHERE a = 1 AND c < 'ba' OR a = 1 AND c > 'ba' ORDER BY n;
SELECT COUNT(*) FROM d FORCE INDEX (k) WHERE a = 1 AND c < 'ba' OR a = 1 AND c > 'ba';
DELETE FROM d WHERE a = 1 AND c < 'ba' OR a = 1 AND c > 'ba';
SELECT * FROM d ORDER BY n;
