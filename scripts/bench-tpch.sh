#!/usr/bin/env bash
# Source 002: TPC-H on Highkey (default settings but for the buffer pool), DuckDB, MySQL 8.0.12 and MariaDB 10.11, one at a time, on the same rows.
# SCALE, SERVERS (highkey,duckdb,mysql,mariadb; peers take minutes at scale 1, hours at 10), REPEATS, QUERIES (1,3,5), LIMIT (seconds a query), DOP (1,2,4),
# HINT, BUFFER_POOL, THREADS (of DuckDB) and OUT change the run. The last table has everything side by side; a wrong answer fails the run.
wanted=,${SERVERS:-highkey,duckdb,mysql,mariadb},
unset SERVERS
source "$(dirname "$0")/lib.sh"
scale=${SCALE:-1} out=${OUT:-lab-results/tpch-${SCALE:-1}}
options=(--repeats "${REPEATS:-3}" --out "$out" --limit "${LIMIT:-600}" --tbl "$WORK/tbl" ${QUERIES:+--queries "$QUERIES"})
equal=(--innodb-buffer-pool-size="${BUFFER_POOL:-4G}" --innodb-flush-log-at-trx-commit=1 --innodb-doublewrite=ON)
beside=()
has() { [[ $wanted == *,$1,* ]]; }

"$BIN/highkey-lab" tpch-files --scale "$scale" --dir "$WORK/tbl"
if has duckdb; then
    venv=${DUCKDB_VENV:-$HOME/.cache/highkey-duckdb}
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -c 'import duckdb' 2>/dev/null || "$venv/bin/pip" install -q duckdb
    "$venv/bin/python" scripts/tpch_duckdb.py "$WORK/tbl" crates/sql/src/df/tests/tpch.sql "$out/duckdb" --threads "${THREADS:-$(nproc)}" \
        --repeats "${REPEATS:-3}" ${QUERIES:+--only "$QUERIES"}
    beside+=(--beside "$out/duckdb")
fi
# peer NAME START PORT [OPTION...]: measured alone, its results for the table of the end.
peer() {
    local name=$1 start=$2 port=$3
    shift 3
    scripts/oracles.sh
    "$start" "$port" "${equal[@]}" --skip-log-bin --innodb-log-file-size=512M --local-infile=ON "$@"
    "$BIN/highkey-lab" tpch --server "$name=mysql://root@127.0.0.1:$port" --indexes after "${options[@]}" "${beside[@]}"
    stop_all
    beside+=(--beside "$out/$name")
}
! has mysql || peer mysql-8.0.12 start_mysql 23842
! has mariadb || peer mariadb-10.11 start_mariadb 23843
if has highkey; then
    start_highkey 23841 "${equal[@]}"
    "$BIN/highkey-lab" tpch --server highkey=mysql://root@127.0.0.1:23841 "${options[@]}" "${beside[@]}" ${DOP:+--dop "$DOP"} ${HINT:+--hint "$HINT"}
fi
