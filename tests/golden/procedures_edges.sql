# Stored procedures where MySQL is not what one expects.
CREATE TABLE e (a INT PRIMARY KEY);
INSERT INTO e VALUES (1), (2), (3);
# A handler is its routine's: what it calls cannot raise its condition again, nor ask for it.
CREATE PROCEDURE again() RESIGNAL;
CREATE PROCEDURE asks() GET STACKED DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT;
CREATE PROCEDURE calls_again() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION CALL again(); SELECT * FROM nope; END;
CREATE PROCEDURE calls_asks() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION CALL asks(); SELECT * FROM nope; END;
CALL calls_again();
CALL calls_asks();
# The number of variables counts before there is a row.
CREATE PROCEDURE fetches() BEGIN DECLARE a, b INT; DECLARE c CURSOR FOR SELECT 1 FROM e WHERE e.a > 10; DECLARE CONTINUE HANDLER FOR NOT FOUND SET @end = 1; OPEN c; FETCH c INTO a, b; END;
CALL fetches();
# LIMIT takes a variable as a number without a sign, and NULL as 0.
CREATE PROCEDURE limits(skipped INT, most INT) SELECT a FROM e ORDER BY a LIMIT skipped, most;
CREATE PROCEDURE joined(most INT) SELECT x.a FROM e AS x JOIN e AS y ON x.a = y.a ORDER BY 1 LIMIT most;
CALL limits(1, 1);
CALL limits(NULL, 1);
CALL limits(0, NULL);
CALL limits(1, -1);
CALL limits(-1, 1);
CALL joined(2);
CALL joined(-1);
CALL joined(NULL);
# No view has variables.
CREATE PROCEDURE views(x INT) CREATE VIEW v AS SELECT x;
# SIGNAL ends no transaction, whatever its number is.
CREATE PROCEDURE deadlock() SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;
SET autocommit = 0;
INSERT INTO e VALUES (4);
CALL deadlock();
SELECT COUNT(*) FROM e;
ROLLBACK;
SET autocommit = 1;
SELECT COUNT(*) FROM e;
# What failed is undone, what came before and comes after is not.
CREATE PROCEDURE half() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @caught = 1; INSERT INTO e VALUES (5), (6), (5); INSERT INTO e VALUES (7); END;
START TRANSACTION;
CALL half();
SELECT a FROM e ORDER BY a;
ROLLBACK;
SELECT a FROM e ORDER BY a;
