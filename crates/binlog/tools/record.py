#!/usr/bin/env python3
"""Records binary logs, SHOW BINLOG EVENTS and GTID arithmetic from MySQL 8.0.12 into testdata/.  usage: record.py PORT DATADIR

The server must be started with --server-id=7 --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency --binlog-row-metadata=FULL.
full.binlog.gz       the tables of tables.txt, with GTIDs, checksums, all metadata
plain.binlog.gz      some of them without checksums and with minimal metadata; rows query events; sessions with other settings
anonymous.binlog.gz  a transaction without a GTID; the server is shut down behind it
*.events.tsv         what SHOW BINLOG EVENTS says about the first two: position, type, end, info (\\n for a line break)
gtid.tsv             function, two arguments, result or E and the error's number (\\n for a line break)
"""
import gzip
import os
import random
import re
import sys
import time

import pymysql

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata")


def generated(value):
    name, _, n = value.partition("(")
    n = n.rstrip(")")
    if name == "json_string":
        return "'\"" + "s" * int(n) + "\"'"
    if name == "json_array":
        return "'[" + ",".join(["100000"] * int(n)) + "]'"
    if name == "json_object":
        return "'{" + ",".join(f'"k{i}":"{i}"' for i in range(int(n))) + "}'"
    if name == "json_nested":
        return "'[{\"t\":\"" + "t" * int(n) + "\"}]'"
    if name == "json_small_in_large":
        return "'[\"" + "t" * int(n) + "\",{\"a\":70000}]'"
    return value


class Tables:
    """Runs tables.txt."""

    def __init__(self, cursor):
        self.cursor = cursor
        self.name = None

    def run(self, only=None):
        with open(os.path.join(OUT, "tables.txt"), encoding="utf-8") as file:
            for line in file.read().split("\n"):
                word, *fields = line.split("\t")
                if word == "table":
                    self.start(fields[0], only)
                elif self.name and word in ("column", "key", "image", "row", "update", "delete"):
                    getattr(self, word)(fields)
        self.start(None, only)

    def start(self, name, only):
        self.name = name if only is None or name in only else None
        self.columns, self.primary, self.created, self.last = [], None, False, None
        self.image(["FULL"])

    def column(self, fields):
        name, kind, *collation = fields
        nullable = "" if kind.endswith(" not null") else " null"
        self.columns.append((name, kind + nullable + (" collate " + collation[0] if collation else "")))

    def key(self, fields):
        self.primary = fields[0]

    def image(self, fields):
        self.cursor.execute("set binlog_row_image=" + fields[0])

    def create(self):
        if not self.created:
            parts = [f"`{name}` {kind}" for name, kind in self.columns]
            parts += [f"primary key({self.primary})"] if self.primary else []
            self.cursor.execute(f"create table {self.name} ({', '.join(parts)})")
            self.created = True

    def row(self, fields):
        self.create()
        self.last = fields
        self.cursor.execute(f"insert into {self.name} values ({', '.join(map(generated, fields))})")

    def update(self, fields):
        changed = [f"`{self.columns[i][0]}`={new}" for i, (old, new) in enumerate(zip(self.last, fields)) if old != new]
        self.last = fields
        self.cursor.execute(f"update {self.name} set {', '.join(changed)}")

    def delete(self, fields):
        self.cursor.execute(f"delete from {self.name}")


# Session settings that a statement's event tells; tests/recorded.rs has the same as values.
CONTEXTS = [
    ("set time_zone='+05:30', auto_increment_increment=5, auto_increment_offset=2, lc_time_names='de_DE'", "insert into notes values (now(6), 'one')"),
    ("set sql_mode='', foreign_key_checks=0, unique_checks=0, collation_connection=latin1_swedish_ci", "insert into notes values (now(), 'two')"),
    ("set timestamp=1500000000.25, lc_time_names='en_US', auto_increment_increment=1, auto_increment_offset=1", "insert into notes values (now(6), 'three')"),
    ("set timestamp=default, collation_database=latin1_swedish_ci, default_collation_for_utf8mb4=utf8mb4_general_ci", "insert into notes values (null, 'four')"),
    ("set sql_auto_is_null=1, autocommit=0", "insert into notes values (null, 'five')"),
]


def escaped(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def save(cursor, datadir, file, name, events=True):
    with open(os.path.join(datadir, file), "rb") as log, open(os.path.join(OUT, name + ".binlog.gz"), "wb") as out:
        out.write(gzip.compress(log.read(), 9, mtime=0))
    if events:
        cursor.execute(f"show binlog events in '{file}'")
        with open(os.path.join(OUT, name + ".events.tsv"), "w", encoding="utf-8") as out:
            for _, position, kind, _, end, info in cursor.fetchall():
                # The number of a DDL's transaction in the storage engine is not in logs of ours.
                info = re.sub(r" /\* xid=\d+ \*/$", "", info) if kind == "Query" else info
                # A long statement is in the log itself; its start says enough here.
                out.write(f"{position}\t{kind}\t{end}\t{escaped(info)[:200]}\n")


def gtid_texts():
    a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
    yield from ["", " ", ",", f"{a}:1", f"{a.upper()}:1-5", f" {a} : 1 - 5 : 7 , {b}:3 ", f"{a}:1,\n{b}:2", f"{a}:1-5:3-9:20", f"{a}:5-4", f"{a}:9:1-3:4",
                f"{b}:1,{a}:1,{b}:2", f"{a}:9223372036854775806", f"{a}:1-9223372036854775806", f",,{a}:1,,", f"{a.replace('-', '')}:1", f"{{{a}}}:1"]
    yield from [a, f"{a}:", f"{a}:0", f"{a}:0-3", f"{a}:5-0", f"{a}:9223372036854775807", f"{a}:1-", f"{a}:-5", f"{a}:1;{b}:1", f"{a}:1 {b}:1", "x:1", f"{a}:a", f"{a[:-1]}:1",
                f"{a}:1-2-3", f"{a}:1:", f"{a}::1", f"{a}:+1", f"{a}:01", f"{a}:1.5", f"{a}1:1", f"{{{a}:1", f"{a}:99999999999999999999", f"{a}:1\t", f"\v{a}:1", f"{a} 1:1"]
    rng = random.Random(8012)
    for _ in range(60):
        parts = []
        for sid in rng.sample([a, b], rng.randint(1, 2)):
            intervals = []
            for _ in range(rng.randint(1, 4)):
                first = rng.randint(1, 20)
                intervals.append(f"{first}-{first + rng.randint(0, 6)}" if rng.random() < 0.7 else str(first))
            parts.append(sid + ":" + ":".join(intervals))
        yield ",".join(parts)


def record_gtids(cursor):
    texts = list(gtid_texts())
    pairs = [(text, "") for text in texts] + list(zip(texts[-60:], texts[-59:])) + [(texts[-i], texts[-2 * i]) for i in range(1, 30)]
    with open(os.path.join(OUT, "gtid.tsv"), "w", encoding="utf-8") as out:
        for function in ("gtid_subtract", "gtid_subset"):
            for a, b in pairs:
                try:
                    cursor.execute(f"select {function}(%s, %s)", (a, b))
                    result = str(cursor.fetchone()[0])
                except pymysql.err.MySQLError as error:
                    result = f"E{error.args[0]}"
                out.write("\t".join([function, *(escaped(text).replace("\t", "\\t") for text in (a, b, result))]) + "\n")


def main():
    port, datadir = int(sys.argv[1]), sys.argv[2]
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True, charset="utf8mb4")
    cursor = connection.cursor()
    record_gtids(cursor)
    cursor.execute("reset master")
    cursor.execute("set time_zone='+00:00', sql_mode='STRICT_TRANS_TABLES,ALLOW_INVALID_DATES'")
    cursor.execute("create database d")
    cursor.execute("use d")
    Tables(cursor).run()
    cursor.execute("set global binlog_row_metadata=MINIMAL")
    cursor.execute("set global binlog_checksum=NONE")
    save(cursor, datadir, "binlog.000001", "full")
    cursor.execute("create database e")
    cursor.execute("use e")
    cursor.execute("set binlog_rows_query_log_events=1")
    Tables(cursor).run(["integers", "enums", "sets", "strings", "mixed", "collations"])
    cursor.execute("create table notes (a datetime(6), b varchar(20))")
    cursor.execute("set session binlog_format=STATEMENT")
    for settings, statement in CONTEXTS:
        cursor.execute(settings)
        cursor.execute(statement)
        connection.commit()
    cursor.execute("set global binlog_checksum=CRC32")
    save(cursor, datadir, "binlog.000002", "plain")
    cursor.execute("set autocommit=1")
    cursor.execute("set global gtid_mode=ON_PERMISSIVE")
    cursor.execute("set global gtid_mode=OFF_PERMISSIVE")
    cursor.execute("drop table integers")
    cursor.execute("show master status")
    last = cursor.fetchone()[0]
    cursor.execute("shutdown")
    time.sleep(5)
    save(cursor, datadir, last, "anonymous", events=False)


if __name__ == "__main__":
    main()
