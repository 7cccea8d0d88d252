# armscii8: Armenian.
SELECT HEX(CONVERT('Աբգ և a«»…😀' USING armscii8)), CONVERT(CONVERT('Աբգ և a«»…😀' USING armscii8) USING utf8mb4), CHARSET(_armscii8 X'B2'), COLLATION(_armscii8 X'B2'), CONVERT(_armscii8 X'B2B3' USING utf8mb4);
SHOW COLLATION LIKE 'armscii8%';
SHOW CHARACTER SET LIKE 'armscii8';
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10) CHARACTER SET armscii8, b VARCHAR(10) COLLATE armscii8_bin, KEY (s));
INSERT INTO t VALUES (1, 'Ա', 'Ա'), (2, 'ա', 'ա'), (3, 'Բ', 'Բ'), (4, 'a', 'a'), (5, 'A', 'A'), (6, 'գ', 'գ');
SELECT id, s, HEX(s), HEX(UPPER(s)), HEX(LOWER(s)), HEX(WEIGHT_STRING(s)), LENGTH(s) FROM t ORDER BY s, id;
SELECT id FROM t ORDER BY b, id;
SELECT id FROM t WHERE s = 'ա' ORDER BY id;
SELECT id FROM t WHERE b LIKE 'ա%' ORDER BY id;
INSERT INTO t VALUES (7, '中', NULL);
SET NAMES armscii8;
SELECT @@collation_connection, HEX('abc');
SET NAMES utf8mb4;
DROP TABLE t;
