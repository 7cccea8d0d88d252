#!/usr/bin/env python3
"""Records assignments and casts from MySQL 8.0 into testdata/store.tsv, cast.tsv and compare.tsv.  usage: ... PORT

Values are kind:payload (int, uint, dec, dbl, text, bytes in hexadecimal, date, dt, time).  Texts hold no tabs.
store.tsv:   type, mode, value, `E code message` or the stored text, warnings (level code message joined by ` | `)
cast.tsv:    target, value, result or NULL, warnings
compare.tsv: left value, right value, -1, 0, 1 or NULL
"""
import os
import sys

import pymysql

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata")

TYPES = [
    "tinyint", "tinyint unsigned", "smallint", "mediumint", "int", "int unsigned", "bigint", "bigint unsigned",
    "int(5) unsigned zerofill", "decimal(5,2)", "decimal(5,2) unsigned", "decimal(20,0)", "float", "float unsigned",
    "float(7,3)", "double", "double(8,2)", "bit(4)", "bit(64)", "year", "date", "datetime", "datetime(3)", "timestamp",
    "timestamp(6)", "time", "time(3)", "char(3)", "varchar(5)", "varchar(5) character set latin1", "tinytext",
    "binary(3)", "varbinary(5)", "blob", "enum('a','b','1')", "set('a','b','c')", "json",
]

VALUES = [
    "int:0", "int:1", "int:-1", "int:127", "int:128", "int:-129", "int:255", "int:256", "int:12345", "int:2147483648",
    "int:-2147483649", "int:9223372036854775807", "int:-9223372036854775808", "uint:18446744073709551615", "int:20180102",
    "int:2018", "int:70", "int:69", "int:101112", "int:20180102030405", "int:8", "int:16", "int:7",
    "dec:0.5", "dec:1.5", "dec:2.5", "dec:-0.5", "dec:123.456", "dec:999.994", "dec:999.995", "dec:-1.005", "dec:1.005",
    "dec:20180102030405.678", "dec:123456789012345678901234567890", "dec:10.0",
    "dbl:0.5e0", "dbl:1.5e0", "dbl:2.5e0", "dbl:-0.4e0", "dbl:123.456e0", "dbl:1e20", "dbl:-1e20", "dbl:3.5e38", "dbl:1e300",
    "dbl:1e-5", "dbl:0.1e0", "dbl:255.5e0",
    "text:", "text: ", "text:0", "text:1", "text: 12 ", "text:12abc", "text:abc", "text:1.5", "text:1.4", "text:-1", "text:1e2", "text:1e400",
    "text:300", "text:99999999999999999999", "text:123.456", "text:0x10", "text:2018-01-02", "text:2018-01-02 03:04:05",
    "text:2018-01-02 03:04:05.678", "text:2018-01-02 03:04:05.9999996", "text:2018-02-30", "text:2018-00-00", "text:0000-00-00", "text:0000-00-00 00:00:00",
    "text:2018-13-01", "text:10:11:12", "text:10:11:12.5678", "text:-10:11:12", "text:900:00:00", "text:10:60:00", "text:1 10:11:12", "text:2018-01-02x",
    "text:2018-1-2", "text:20180102", "text:180102", "text:1969-12-31 23:59:59", "text:2040-01-01 00:00:00", "text:10000-01-01", "text:a", "text:A", "text:b ",
    "text:a,b", "text:b,a", "text:a,x", "text:abcd", "text:abc  ", "text:abcde   ", "text:abcdef", "text:é", "text:ééé", "text:日本語", "text:😀", "text:99", "text:1999", "text:00", "text:2200",
    "text:[1, 2]", 'text:{"bb": 1, "a": [true, null]}', "text:null", 'text:"x"', "text:{bad",
    "bytes:00", "bytes:41", "bytes:ff", "bytes:414243", "bytes:41424344", "bytes:0102030405",
    "date:2018-01-02", "dt:2018-01-02 03:04:05", "dt:2018-01-02 03:04:05.678901", "dt:2018-01-02 23:59:59.999999", "time:10:11:12", "time:-10:11:12.567",
]

MODES = {
    "strict": "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO",
    "ignore": "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO",
    "lax": "",
}

TARGETS = ["signed", "unsigned", "double", "decimal(30,5)", "char", "date", "datetime(6)", "time(6)", "binary"]

COMPARED = [
    "int:0", "int:1", "int:-1", "uint:18446744073709551615", "dec:1.0", "dec:1.5", "dbl:1e0", "dbl:1.5e0", "text:1", "text:1.50", "text:abc", "text:ABC",
    "text:", "text:2018-01-02", "text:2018-01-02 00:00:00", "text:10:11:12", "int:20180102", "date:2018-01-02", "dt:2018-01-02 00:00:00",
    "dt:2018-01-02 03:04:05.5", "time:10:11:12", "bytes:414243", "bytes:616263", "int:101112", "dec:18446744073709551614.5", "dbl:1.8446744073709552e19",
]


def literal(value):
    kind, payload = value.split(":", 1)
    if kind in ("int", "uint", "dec", "dbl"):
        return payload
    if kind == "bytes":
        return "CAST(x'%s' AS BINARY)" % payload
    if kind == "text":
        return "_utf8mb4 x'%s' COLLATE utf8mb4_0900_ai_ci" % payload.encode().hex() if payload else "''"
    return {"date": "DATE", "dt": "TIMESTAMP", "time": "TIME"}[kind] + "'%s'" % payload


def warnings(cursor):
    cursor.execute("SHOW WARNINGS")
    return " | ".join("%s %d %s" % row for row in cursor.fetchall())


def write(name, rows):
    with open(os.path.join(OUT, name), "w") as file:
        for row in rows:
            assert not any("\t" in field or "\n" in field for field in row), row
            file.write("\t".join(row) + "\n")


def main():
    connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4", autocommit=True)
    cursor = connection.cursor()
    cursor.execute("CREATE DATABASE IF NOT EXISTS recorded")
    cursor.execute("USE recorded")
    cursor.execute("SET time_zone = '+00:00', sql_mode = '', timestamp = 1514862000")  # 2018-01-02 03:00:00
    rows = []
    for ty in TYPES:
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute("CREATE TABLE t (c %s) CHARSET utf8mb4 ENGINE=MEMORY" % ty if ty not in ("json", "blob", "tinytext") else "CREATE TABLE t (c %s) CHARSET utf8mb4" % ty)
        for mode, sql_mode in MODES.items():
            cursor.execute("SET sql_mode = '%s'" % sql_mode)
            for value in VALUES:
                cursor.execute("DELETE FROM t")
                try:
                    cursor.execute("INSERT %s INTO t VALUES (%s)" % ("IGNORE" if mode == "ignore" else "", literal(value)))
                    noted = warnings(cursor)
                    cursor.execute("SELECT hex(c + 0) FROM t" if ty.startswith("bit") else "SELECT hex(convert(c USING utf8mb4)) FROM t" if not ("bin" in ty or "blob" in ty) else "SELECT hex(c) FROM t")
                    got = cursor.fetchone()[0]
                    rows.append((ty, mode, value, "NULL" if got is None else got, noted))
                except pymysql.MySQLError as error:
                    rows.append((ty, mode, value, "E %d %s" % error.args, ""))
    write("store.tsv", rows)
    cursor.execute("SET sql_mode = ''")
    rows = []
    for target in TARGETS:
        for value in VALUES:
            expression = "%s + 0e0" % literal(value) if target == "double" else "CAST(%s AS %s)" % (literal(value), target)
            try:
                cursor.execute("SELECT hex(%s)" % expression if target == "binary" else "SELECT hex(convert(%s USING utf8mb4))" % expression)
                got = cursor.fetchone()[0]
                rows.append((target, value, "NULL" if got is None else got, warnings(cursor)))
            except pymysql.MySQLError as error:
                rows.append((target, value, "E %d %s" % error.args, ""))
    write("cast.tsv", rows)
    rows = []
    for a in COMPARED:
        for b in COMPARED:
            x, y = literal(a), literal(b)
            try:
                cursor.execute("SELECT IF(%s = %s, 0, IF(%s < %s, -1, 1))" % (x, y, x, y))
                rows.append((a, b, str(cursor.fetchone()[0])))
            except pymysql.MySQLError as error:
                rows.append((a, b, "E %d %s" % error.args))
    write("compare.tsv", rows)


if __name__ == "__main__":
    main()
