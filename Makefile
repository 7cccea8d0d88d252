# One target directory for every clone: DataFusion's first release build takes about 20 minutes on 2 cores.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/highkey-target
BIN := $(CARGO_TARGET_DIR)/release
DATADIR ?= data
CYCLES ?= 200

.PHONY: build run test bench crash sync-failure crash-sim histories replication replica replay semi-sync faults clients schedules miri valgrind oracles record binlog-readers bench-commits bench-idle bench-oltp bench-tpch bench-mixed queries

# Always the whole workspace: a part of it would choose other features, and build DataFusion a second time.
build:
	cargo build --release --workspace

# A server on 127.0.0.1:3306 with its data in ./data, ready for any MySQL client.
run: build
	$(BIN)/highkey serve --datadir $(DATADIR)

# Everything that CI runs.
test:
	scripts/test.sh

# The engine by itself, then sources 000, 003 and 004 against MySQL 8.0.12 and MariaDB 10.11 in the same run.
bench: build
	scripts/bench.sh

# Source 001: updates with the binary log and without, six servers; TABLES=64 ROWS=... for more.
bench-commits: build
	scripts/bench-commits.sh

# What connections cost that do nothing; COUNTS=0,9000 for less.
bench-idle: build
	scripts/bench-idle.sh

# sysbench's point selects and read-write transactions beside MySQL and MariaDB; THREADS=16 TESTS=point_select for less.
bench-oltp: build
	scripts/bench-oltp.sh

# Source 002: TPC-H beside DuckDB, MySQL and MariaDB, answers compared; SCALE=0.1 SERVERS=highkey,duckdb for less.
bench-tpch: build
	scripts/bench-tpch.sh

# Transactions and reports at once, beside MySQL; SCALE=1 WAREHOUSES=10 for more.
bench-mixed: build
	scripts/bench-mixed.sh

# Kill -9 under load; CYCLES=500 for more.
crash: build
	scripts/crash.sh $(CYCLES)

# A sync of the running server fails under load; CYCLES=100 for more, ARGS="7 pwrite64:EIO pwrite64:ENOSPC" for a seed and other calls. Needs root, for strace.
sync-failure: build
	scripts/sync-failure.sh $(if $(filter file,$(origin CYCLES)),20,$(CYCLES)) $(ARGS)

# Random transactions of several sessions, checked for what their isolation level forbids; RUNS=100 for more.
histories: build
	scripts/histories.sh $(or $(RUNS),10)

# MySQL and MariaDB replicate from a server that is killed again and again; CYCLES=100 for more.
replication: build
	scripts/replication.sh $(if $(filter file,$(origin CYCLES)),20,$(CYCLES))

# Random queries, every way of running them compared, also with MySQL 8.0.12; SECONDS_OF=3600 for more.
queries: build
	MYSQL=1 scripts/queries.sh $(or $(SECONDS_OF),300)

# Drivers of Python, Go, Node and Java against the built server.
clients: build
	scripts/clients.sh

# Bad packets, damaged files, full disks, statements too long; ARGS=--short for less. The full disk needs root.
faults: build
	scripts/faults.sh $(ARGS)

# A replica of MySQL 8.0.12 and MariaDB 10.11 under load and kills, compared row for row; ARGS="30 7 mysql-gtid" for seconds a round, seed, scenarios.
replica: build
	scripts/replica.sh $(ARGS)

# Binary logs of MySQL 8.0.12, MariaDB 10.11 and Highkey, printed by mysqlbinlog and replayed through a client; ARGS="5 7 mysql" for seconds, seed, sources.
replay: build
	scripts/replay.sh $(ARGS)

# Semi-synchronous replication to and from MariaDB 10.11 and ourselves, with kill -9 of either side; CYCLES=100 for more, ARGS="from-mariadb" for one way.
semi-sync: build
	scripts/semi-sync.sh $(if $(filter file,$(origin CYCLES)),10,$(CYCLES)) $(ARGS)

# The simulated disk, power off at every write of every script, many seeds.
crash-sim:
	scripts/crash-sim.sh

# Threads of the engine under shuttle's schedules.
schedules:
	scripts/schedules.sh

# Undefined behaviour in the page code (nightly toolchain).
miri:
	scripts/miri.sh

# memcheck and helgrind on the storage tests.
valgrind:
	scripts/valgrind.sh

# MariaDB's mariadb-binlog and a MySQL 8.0.12 replica read a binary log with every column type.
binlog-readers:
	scripts/binlog-readers.sh

# The real servers and clients to compare with.
oracles:
	scripts/oracles.sh

# Record the golden answers again from MySQL 8.0.12.
record: build
	scripts/record.sh
