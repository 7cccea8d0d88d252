# The AUTO_INCREMENT value of a row that IGNORE leaves out, or that becomes an update, is the next row's.
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, v INT);
INSERT INTO t (u, v) VALUES (1, 1), (2, 2), (3, 3);
INSERT IGNORE INTO t (u, v) VALUES (1, 9), (4, 9), (2, 9), (5, 9);
SELECT LAST_INSERT_ID();
SELECT * FROM t ORDER BY id;
INSERT INTO t (u, v) VALUES (4, 10), (6, 10), (5, 10), (7, 10) ON DUPLICATE KEY UPDATE v = v + 1;
SELECT LAST_INSERT_ID();
SELECT * FROM t ORDER BY id;
INSERT INTO t (u, v) VALUES (8, 1);
INSERT IGNORE INTO t (u, v) VALUES (1, 9), (2, 9);
SELECT LAST_INSERT_ID();
INSERT INTO t (u, v) VALUES (9, 1);
SELECT * FROM t ORDER BY id;
# Values that are given between.
INSERT IGNORE INTO t (id, u, v) VALUES (NULL, 1, 9), (100, 20, 9), (NULL, 2, 9), (NULL, 21, 9);
SELECT LAST_INSERT_ID();
INSERT INTO t (id, u, v) VALUES (NULL, 1, 9), (200, 22, 9), (NULL, 2, 9), (NULL, 23, 9) ON DUPLICATE KEY UPDATE v = 0;
SELECT LAST_INSERT_ID();
INSERT INTO t (id, u, v) VALUES (NULL, 30, 9), (NULL, 1, 9), (200, 31, 9), (NULL, 2, 9), (NULL, 33, 9) ON DUPLICATE KEY UPDATE v = 0;
SELECT LAST_INSERT_ID();
SELECT * FROM t ORDER BY id;
SET insert_id = 1000;
INSERT IGNORE INTO t (u, v) VALUES (1, 9), (80, 9), (2, 9), (81, 9);
SELECT LAST_INSERT_ID();
SET auto_increment_increment = 5;
INSERT IGNORE INTO t (u, v) VALUES (1, 9), (90, 9), (2, 9), (91, 9);
SELECT LAST_INSERT_ID();
SET auto_increment_increment = DEFAULT;
SELECT * FROM t WHERE id > 500 ORDER BY id;
# Rows of one statement that meet each other, several times.
INSERT INTO t (u, v) VALUES (500, 1), (500, 2), (501, 1), (500, 3), (501, 2), (502, 1), (503, 1), (504, 1), (504, 2), (505, 1) ON DUPLICATE KEY UPDATE v = VALUES(v);
SELECT LAST_INSERT_ID();
INSERT IGNORE INTO t (u, v) VALUES (600, 1), (600, 2), (601, 1), (600, 3), (601, 2), (602, 1), (603, 1), (604, 1), (604, 2), (605, 1);
SHOW COUNT(*) WARNINGS;
SELECT LAST_INSERT_ID();
SELECT u, v, id - (SELECT MAX(id) FROM t WHERE u = 91) FROM t WHERE u >= 500 ORDER BY id;
# Rows without parent, rows of a query.
CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id));
INSERT IGNORE INTO c (p) VALUES (999999), (1), (888888), (2);
SELECT * FROM c ORDER BY id;
CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE);
INSERT IGNORE INTO s (u) SELECT v FROM t WHERE id < 10 ORDER BY id;
SELECT LAST_INSERT_ID();
SELECT * FROM s ORDER BY id;
DROP TABLE s, c, t;
