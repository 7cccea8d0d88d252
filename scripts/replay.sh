#!/usr/bin/env bash
# Binary logs of MySQL 8.0.12, MariaDB 10.11 and our own as text, replayed into Highkey through the mariadb client, compared row for row:
# replay.sh [SECONDS] [SEED] [SOURCE...]. Sources: mysql mariadb highkey; all by default. SECONDS is the load of each.
# MySQL's own mysqlbinlog is not there; crates/binlog/examples/as_text.rs prints as it does, and MySQL replays what it prints too.
source "$(dirname "$0")/lib.sh"
SECONDS_OF_LOAD=${1:-5}
SEED=${2:-$RANDOM}
SOURCES=("${@:3}")
[ ${#SOURCES[@]} -gt 0 ] || SOURCES=(mysql mariadb highkey)
PORT=23860
scripts/oracles.sh
cargo build --release -p highkey-binlog --example as_text
GTIDS=(--gtid-mode=ON --enforce-gtid-consistency=ON)

sql() { # sql PORT STATEMENTS
    mariadb --no-defaults -h127.0.0.1 -P"$1" -uroot --default-character-set=utf8mb4 -Nse "$2"
}

replay() { # replay FILE PORT
    mariadb --no-defaults -h127.0.0.1 -P"$2" -uroot --default-character-set=utf8mb4 --binary-mode --max-allowed-packet=1G <"$1"
}

compare() { # compare PORT
    "$BIN/highkey-sim" replica compare --source mysql://root@127.0.0.1:$PORT --replica mysql://root@127.0.0.1:"$1" --at-rest
}

two_phases() { # transactions in two phases; what ends stays apart from what began
    sql $PORT "CREATE DATABASE load_xa; CREATE TABLE load_xa.t (id INT PRIMARY KEY, v INT)"
    sql $PORT "XA START 'first'; INSERT INTO load_xa.t VALUES (1, 1); XA END 'first'; XA PREPARE 'first'"
    sql $PORT "XA START 'second', 'b', 7; INSERT INTO load_xa.t VALUES (2, 1); XA END 'second', 'b', 7; XA PREPARE 'second', 'b', 7"
    sql $PORT "INSERT INTO load_xa.t VALUES (3, 1)"
    sql $PORT "XA COMMIT 'first'"
    sql $PORT "XA ROLLBACK 'second', 'b', 7"
    sql $PORT "XA START 'one'; INSERT INTO load_xa.t VALUES (4, 1); XA END 'one'; XA COMMIT 'one' ONE PHASE"
}

for source in "${SOURCES[@]}"; do
    echo "replay of $source, seed $SEED"
    case $source in
    mysql) start_mysql $PORT --server-id=1 --log-bin=binlog --max-binlog-size=1M "${GTIDS[@]}"; data=$WORK/mysql-$PORT ;;
    mariadb) start_mariadb $PORT --server-id=1 --log-bin=binlog --binlog-format=ROW --max-binlog-size=1M; data=$WORK/mariadb-$PORT ;;
    highkey) start_highkey $PORT --server-id=1 --log-bin --max-binlog-size=1M "${GTIDS[@]}"; data=$WORK/highkey-$PORT ;;
    esac
    "$BIN/highkey-sim" replica load --url mysql://root@127.0.0.1:$PORT --seconds "$SECONDS_OF_LOAD" --seed "$SEED"
    two_phases
    sql $PORT "FLUSH BINARY LOGS"
    mapfile -t files < <(find "$data" -name 'binlog.0*' | sort)
    unset 'files[-1]'

    # MariaDB's program reads all three. GTIDs of MySQL are comments to it, and it does not know some of
    # its collations by name.
    mariadb-binlog --no-defaults "${files[@]}" >"$WORK/mariadb.txt" 2>"$WORK/mariadb.err" || { cat "$WORK/mariadb.err" >&2; exit 1; }
    start_highkey $((PORT + 1)) --server-id=2 --log-bin
    replay "$WORK/mariadb.txt" $((PORT + 1))
    # It takes the commit in one phase of the other two for a preparation.
    [ "$source" = mariadb ] || sql $((PORT + 1)) "XA COMMIT 'one'"
    compare $((PORT + 1))
    [ -z "$(sql $((PORT + 1)) 'XA RECOVER')" ] || { echo "something is still prepared" >&2; exit 1; }

    if [ "$source" != mariadb ]; then
        "$BIN/examples/as_text" "${files[@]}" >"$WORK/mysql.txt"
        executed=$(sql $PORT 'SELECT @@gtid_executed')
        start_highkey $((PORT + 2)) --server-id=2 --log-bin "${GTIDS[@]}"
        start_mysql $((PORT + 3)) --server-id=3 --log-bin=binlog --max-allowed-packet=1G "${GTIDS[@]}"
        for port in $((PORT + 2)) $((PORT + 3)); do
            replay "$WORK/mysql.txt" $port
            compare $port
            [ "$(sql $port 'SELECT @@gtid_executed')" = "$executed" ] || { echo "port $port has not executed $executed" >&2; exit 1; }
        done
        # What has been executed is left out.
        replay "$WORK/mysql.txt" $((PORT + 2))
        compare $((PORT + 2))
    fi
    stop_all
    rm -rf "$WORK"/mysql-* "$WORK"/mariadb-* "$WORK"/highkey-*
done
echo "what was replayed is equal to its source"
