#!/usr/bin/env python3
"""Has a MySQL 8.0.12 replica apply a binary log of ours and compares what it holds with a server that ran the statements.

usage: replay.py PORT REPLICA_PORT REPLICA_DATADIR FILE GTIDS
The replica is started with --server-id=9 --relay-log=relay --gtid-mode=ON --enforce-gtid-consistency; the file becomes its relay log.
"""
import os
import shutil
import sys
import time

import pymysql

import record


def connect(port):
    return pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, charset="utf8mb4").cursor()


def checksums(cursor):
    cursor.execute("select table_name from information_schema.tables where table_schema='d' order by table_name")
    tables = [row[0] for row in cursor.fetchall()]
    answer = {}
    for table in tables:
        cursor.execute(f"checksum table d.`{table}` extended")
        checksum = cursor.fetchone()[1]
        cursor.execute(f"select count(*) from d.`{table}`")
        answer[table] = (checksum, cursor.fetchone()[0])
    return answer


def main():
    port, replica_port, datadir, file, gtids = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    source, replica = connect(port), connect(replica_port)
    source.execute("set time_zone='+00:00', sql_mode='STRICT_TRANS_TABLES,ALLOW_INVALID_DATES'")
    source.execute("create database d")
    source.execute("use d")
    record.Tables(source).run()
    shutil.copy(file, os.path.join(datadir, "relay.000001"))
    with open(os.path.join(datadir, "relay.index"), "w") as index:
        index.write("./relay.000001\n")
    replica.execute("change master to master_host='nowhere', relay_log_file='relay.000001', relay_log_pos=4")
    replica.execute("start slave sql_thread")
    for _ in range(300):
        replica.execute("show slave status")
        status = dict(zip([column[0] for column in replica.description], replica.fetchone()))
        if status["Last_SQL_Errno"] or status["Executed_Gtid_Set"] == gtids:
            break
        time.sleep(0.1)
    if status["Executed_Gtid_Set"] != gtids:
        sys.exit(f"the replica stopped at {status['Relay_Log_Pos']}, behind {status['Executed_Gtid_Set']}: {status['Last_SQL_Error']}")
    ours, theirs = checksums(replica), checksums(source)
    if ours != theirs or not ours:
        sys.exit(f"the replica differs: {dict(set(ours.items()) ^ set(theirs.items()))}")
    print(f"a MySQL 8.0.12 replica applied {gtids}: {len(ours)} tables, {sum(rows for _, rows in ours.values())} rows, equal checksums")


main()
