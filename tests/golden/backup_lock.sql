# LOCK INSTANCE FOR BACKUP, as far as one session shows it.
CREATE DATABASE backup_lock;
USE backup_lock;
LOCK INSTANCE;
LOCK INSTANCE FOR;
LOCK INSTANCE FOR BACKUP READ;
UNLOCK INSTANCE FOR BACKUP;
CREATE TABLE t (id INT PRIMARY KEY);
BEGIN;
INSERT INTO t VALUES (1);
# It commits nothing.
LOCK INSTANCE FOR BACKUP;
LOCK INSTANCE FOR BACKUP;
ROLLBACK;
SELECT * FROM t;
SELECT DISTINCT object_type, object_schema, object_name, lock_type, lock_duration, lock_status FROM performance_schema.metadata_locks WHERE object_type = 'BACKUP LOCK';
# The session itself may change definitions.
ALTER TABLE t ADD v INT;
CREATE TABLE u (id INT);
DROP TABLE u;
INSERT INTO t VALUES (2, 2);
SELECT DISTINCT lock_type, lock_status FROM performance_schema.metadata_locks WHERE object_type = 'BACKUP LOCK';
UNLOCK INSTANCE;
UNLOCK INSTANCE;
SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE object_type = 'BACKUP LOCK';
PREPARE s FROM 'LOCK INSTANCE FOR BACKUP';
PREPARE s FROM 'UNLOCK INSTANCE';
START TRANSACTION READ ONLY;
LOCK INSTANCE FOR BACKUP;
COMMIT;
UNLOCK INSTANCE;
DROP DATABASE backup_lock;
