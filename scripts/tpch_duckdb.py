#!/usr/bin/env python3
"""TPC-H in DuckDB, in memory: loads .tbl files, runs the queries, leaves times and answers as `highkey-lab tpch` does (crates/lab/src/tpch/results.rs)."""
import argparse
import decimal
import pathlib
import time

import duckdb

TABLES = {
    "region": "r_regionkey int, r_name varchar, r_comment varchar",
    "nation": "n_nationkey int, n_name varchar, n_regionkey int, n_comment varchar",
    "part": "p_partkey int, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size int, p_container varchar, "
    "p_retailprice decimal(15,2), p_comment varchar",
    "supplier": "s_suppkey int, s_name varchar, s_address varchar, s_nationkey int, s_phone varchar, s_acctbal decimal(15,2), s_comment varchar",
    "partsupp": "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost decimal(15,2), ps_comment varchar",
    "customer": "c_custkey int, c_name varchar, c_address varchar, c_nationkey int, c_phone varchar, c_acctbal decimal(15,2), "
    "c_mktsegment varchar, c_comment varchar",
    "orders": "o_orderkey bigint, o_custkey int, o_orderstatus varchar, o_totalprice decimal(15,2), o_orderdate date, o_orderpriority varchar, "
    "o_clerk varchar, o_shippriority int, o_comment varchar",
    "lineitem": "l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity decimal(15,2), l_extendedprice decimal(15,2), "
    "l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag varchar, l_linestatus varchar, l_shipdate date, l_commitdate date, "
    "l_receiptdate date, l_shipinstruct varchar, l_shipmode varchar, l_comment varchar",
}


def kind(column_type):
    name = str(column_type).lower()
    if name in ("double", "float", "real"):
        return "double"
    return "number" if "int" in name or name.startswith("decimal") else "text"


def cell(value):
    if value is None:
        return "\\N"
    return format(value, "f") if isinstance(value, decimal.Decimal) else str(value)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("tbl", type=pathlib.Path, help="folder of the .tbl files")
parser.add_argument("queries", type=pathlib.Path, help="the 22 queries, each ended by ;")
parser.add_argument("out", type=pathlib.Path, help="folder of the results")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--only", help="numbers of queries, as in 1,3,5")
options = parser.parse_args()

db = duckdb.connect(config={"threads": options.threads})
start = time.monotonic()
for table, columns in TABLES.items():
    db.execute(f"create table {table} ({columns})")
    db.execute(f"copy {table} from '{options.tbl / table}.tbl' (delimiter '|', quote '', escape '', header false)")
print(f"duckdb {duckdb.__version__}, {options.threads} threads: loaded in {time.monotonic() - start:.1f} s")
(options.out / "answers").mkdir(parents=True, exist_ok=True)
texts = [text.strip() for text in options.queries.read_text().split(";") if text.strip()]
only = [int(n) for n in options.only.split(",")] if options.only else range(1, len(texts) + 1)
with open(options.out / "times.csv", "w") as times:
    print("mode,query,seconds", file=times)
    for number in only:
        for _ in range(options.repeats):
            start = time.monotonic()
            result = db.execute(texts[number - 1])
            rows = result.fetchall()
            print(f",{number},{time.monotonic() - start:.6f}", file=times)
        with open(options.out / "answers" / f"{number:02}.tsv", "w") as answer:
            print("\t".join(kind(column[1]) for column in result.description), file=answer)
            for row in rows:
                print("\t".join(map(cell, row)), file=answer)
