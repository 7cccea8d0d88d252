#!/usr/bin/env python3
"""Records what a real MySQL answers: record.py PORT [sql_mode], beside tables.txt and queries.sql. Writes answers.txt."""
import os
import sys

import pymysql
from pymysql.converters import encoders

here = os.path.dirname(os.path.abspath(__file__))
connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
cursor = connection.cursor()
cursor.execute("DROP DATABASE IF EXISTS df_recorded")
cursor.execute("CREATE DATABASE df_recorded CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci")
cursor.execute("USE df_recorded")
cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci")
for block in open(f"{here}/tables.txt", encoding="utf8").read().split("\n\n"):
    head, columns, *rows = block.strip().split("\n")
    name = head.split()[1]
    cursor.execute(f"CREATE TABLE {name} ({columns.replace(' | ', ', ')}, PRIMARY KEY (id))")
    for row in rows:
        cells = [None if cell == "NULL" else cell for cell in row.split("|")]
        cursor.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(cells))})", cells)
connection.commit()

# Cells as the text protocol sends them, not as Python sees them.
raw = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4", database="df_recorded", conv=encoders)
cursor = raw.cursor()
cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci")
with open(f"{here}/answers.txt", "w", encoding="utf8") as out:
    for query in open(f"{here}/queries.sql", encoding="utf8"):
        query = query.strip()
        out.write(query + "\n")
        try:
            cursor.execute(query)
            for row in cursor.fetchall():
                cells = ["NULL" if cell is None else cell.decode("utf8", "replace") if isinstance(cell, bytes) else str(cell) for cell in row]
                out.write("  " + "|".join(cells) + "\n")
        except pymysql.MySQLError as error:
            out.write(f"  error {error.args[0]}\n")
        out.write("\n")
