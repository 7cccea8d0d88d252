# Collations of languages in Unicode: letters that are others elsewhere, in indexes, groups, joins and LIKE.
CREATE TABLE t (id INT PRIMARY KEY, tr VARCHAR(10) COLLATE utf8mb4_turkish_ci, pl VARCHAR(10) CHARACTER SET utf8 COLLATE utf8_polish_ci, sv VARCHAR(10) CHARACTER SET ucs2 COLLATE ucs2_swedish_ci, de VARCHAR(10) CHARACTER SET utf16 COLLATE utf16_german2_ci, KEY (tr), KEY (pl), KEY (sv), KEY (de));
INSERT INTO t VALUES (1, 'i', 'l', 'a', 'a'), (2, 'I', 'ł', 'å', 'ae'), (3, 'ı', 'm', 'ä', 'ä'), (4, 'İ', 'Ł', 'ö', 'AF'), (5, 'h', 'L', 'z', 'ß'), (6, 'j', 'k', 'o', 'ss'), (7, 'ş', 'ż', 'y', 'Ä'), (8, 's', 'z', 'ü', 'sz'), (9, 'c', 'ź', 'Ö', 'oe'), (10, 'ç', 'zz', 'ø', 'ö');
SELECT id, tr FROM t ORDER BY tr, id;
SELECT id, pl FROM t ORDER BY pl, id;
SELECT id, sv FROM t ORDER BY sv, id;
SELECT id, de FROM t ORDER BY de, id;
SELECT id FROM t WHERE tr = 'I' ORDER BY id;
SELECT id FROM t WHERE tr LIKE 'i%' ORDER BY id;
SELECT id FROM t WHERE pl BETWEEN 'l' AND 'm' ORDER BY id;
SELECT id FROM t WHERE de = 'AE' ORDER BY id;
SELECT id FROM t WHERE de LIKE 'AE' ORDER BY id;
SELECT MIN(id), COUNT(*) FROM t GROUP BY de ORDER BY 1;
SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.sv = y.sv AND x.id < y.id ORDER BY 1, 2;
SELECT UPPER(tr), LOWER(tr), UPPER(de) FROM t WHERE id IN (1, 2, 3, 4, 5) ORDER BY id;
SELECT COLLATION_NAME, CHARACTER_SET_NAME, ID, IS_DEFAULT, SORTLEN, PAD_ATTRIBUTE FROM information_schema.COLLATIONS WHERE COLLATION_NAME LIKE '%turkish_ci' OR COLLATION_NAME LIKE 'utf8mb4\_0900\_as\_c_' ORDER BY ID;
SELECT 'a' COLLATE utf8mb4_klingon_ci;
DROP TABLE t;
