#!/usr/bin/env bash
# Semi-synchronous replication from Highkey to MariaDB 10.11, by both wait points, and from MariaDB 10.11 and Highkey to Highkey: acknowledgements, the timeout,
# the return, and kill -9 of either side again and again: whatever a client was told is on the replica. semi-sync.sh [CYCLES [WHICH...]]
# The MySQL 8.0.12 that we compare with comes without the semi-synchronous plugins: a replica goes on without.
source "$(dirname "$0")/lib.sh"
CYCLES=${1:-10}
shift || true
WHICH=${*:-to-mariadb from-highkey from-mariadb from-mysql}
PORT=23870
REPLICA=$((PORT + 1))
sql() { mariadb --no-defaults -N -h127.0.0.1 -P"$1" -uroot -e "$2"; }
# Both servers know the names with master.
status() { sql $PORT "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_$1'" | cut -f2; }
fail() { echo "$1" >&2; sql $PORT "SHOW STATUS LIKE 'Rpl_semi_sync_master%'" >&2 || true; sql $REPLICA 'SHOW SLAVE STATUS\G' >&2 || true; exit 1; }
is() { # is WHAT VALUE: waits until a status variable has a value
    for _ in $(seq 200); do
        [ "$(status "$1")" = "$2" ] && return 0
        sleep 0.05
    done
    fail "Rpl_semi_sync_master_$1 is $(status "$1"), not $2"
}
start_source() { # again after a kill
    "$BIN/highkey" serve --datadir "$WORK/source" --port $PORT --server-id=1 --log-bin --collation-server=utf8mb4_general_ci --max-binlog-size=64K \
        --rpl-semi-sync-source-enabled=1 --rpl-semi-sync-source-timeout=60000 --rpl-semi-sync-source-wait-point="$POINT" >>"$WORK/source.log" 2>&1 &
    SOURCE=$!
    SERVERS+=("$SOURCE")
    wait_for $PORT || { tail "$WORK/source.log"; exit 1; }
}
applied() { # until the replica has applied what it has read; its source may be gone
    for _ in $(seq 300); do
        state=$(mariadb --no-defaults -h127.0.0.1 -P$REPLICA -uroot -e 'SHOW SLAVE STATUS\G')
        read -r read_file read_pos exec_file exec_pos < <(awk '/ Master_Log_File:/ { a = $2 } /Read_Master_Log_Pos:/ { b = $2 } /Relay_Master_Log_File:/ { c = $2 } /Exec_Master_Log_Pos:/ { d = $2 } END { print a, b, c, d }' <<<"$state")
        [ "$read_file $read_pos" = "$exec_file $exec_pos" ] && return 0
        sleep 0.05
    done
    fail "the replica does not apply what it has read"
}

acknowledges() { # acknowledges ON|OFF: waits until the replica says so of itself
    for _ in $(seq 200); do
        [ "$(sql $REPLICA "SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'" | cut -f2)" = "$1" ] && return 0
        sleep 0.05
    done
    fail "the replica's status does not become $1"
}
start_replica() { # Highkey, again after a kill
    start_highkey $REPLICA --server-id=2 --rpl-semi-sync-replica-enabled=1 "$@"
    FOLLOWER=${SERVERS[-1]}
}
write_for_a_while() { # write_for_a_while SEED: four clients note what they are told of; they go on when this returns
    : >"$WORK/told"
    CLIENTS=()
    for client in 1 2 3 4; do
        for id in $(seq $((next + client * 100000)) $((next + client * 100000 + 5000))); do echo "INSERT INTO d.t VALUES ($id, $client); SELECT $id;"; done >"$WORK/client-$client.sql"
        mariadb --no-defaults -N --unbuffered -h127.0.0.1 -P$PORT -uroot <"$WORK/client-$client.sql" >>"$WORK/told" 2>/dev/null &
        CLIENTS+=($!)
    done
    sleep "$(awk "BEGIN { srand($1); print 0.5 + rand() }")"
    next=$((next + 6000))
}
told_is_held() { # told_is_held WHEN: the replica has what clients were told of
    sql $REPLICA "SELECT id FROM d.t" | sort >"$WORK/held"
    missing=$(comm -23 <(sort "$WORK/told") "$WORK/held" | wc -l)
    [ "$missing" = 0 ] || fail "$1: $missing of $(wc -l <"$WORK/told") commits that clients were told of are not on the replica"
    echo "$1: $(wc -l <"$WORK/told") commits that clients were told of are on the replica"
}

to-mariadb() {
for POINT in AFTER_SYNC AFTER_COMMIT; do
    rm -rf "$WORK/source"
    # Set up without a replica, and so without waiting.
    start_source
    sql $PORT "SET GLOBAL rpl_semi_sync_source_enabled=0; SET sql_log_bin=0; CREATE USER repl@'%' IDENTIFIED WITH mysql_native_password BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; SET sql_log_bin=1; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"
    sql $PORT "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; SET GLOBAL rpl_semi_sync_master_enabled=1"
    start_mariadb $REPLICA --server-id=2 --rpl-semi-sync-slave-enabled=ON
    sql $REPLICA "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=no,
        MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4; START SLAVE"
    is clients 1

    # Acknowledged, definitions and transactions in two phases too.
    before=$(status yes_tx)
    for id in $(seq 1 50); do sql $PORT "INSERT INTO d.t VALUES ($id, 0)"; done
    sql $PORT "CREATE TABLE d.u (id INT); BEGIN; INSERT INTO d.u VALUES (1); UPDATE d.t SET v = 1; COMMIT"
    sql $PORT "XA START 'a'; INSERT INTO d.u VALUES (2); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'"
    [ "$(status status) $(status no_tx)" = "ON 0" ] || fail "semi-synchronous replication is not on"
    [ $(($(status yes_tx) - before)) -ge 54 ] || fail "$(status yes_tx) acknowledged, $before before"

    # A replica that does not answer: the timeout, asynchronous commits, and back.
    sql $PORT "SET GLOBAL rpl_semi_sync_source_timeout=300"
    sql $REPLICA "STOP SLAVE IO_THREAD"
    is clients 0
    sql $PORT "INSERT INTO d.t VALUES (101, 0)"
    [ "$(status status) $(status no_times)" = "OFF 1" ] || fail "no timeout"
    sql $PORT "INSERT INTO d.t VALUES (102, 0)"
    [ "$(status no_tx)" = 2 ] || fail "$(status no_tx) commits were not acknowledged"
    sql $REPLICA "START SLAVE IO_THREAD"
    is status ON
    sql $PORT "SET GLOBAL rpl_semi_sync_source_timeout=60000; INSERT INTO d.t VALUES (103, 0)"
    [ "$(status no_tx)" = 2 ] || fail "not acknowledged after the return"

    # A client waits, another one does not see what it waits for (AFTER_SYNC); a KILL ends the wait.
    sql $REPLICA "STOP SLAVE IO_THREAD"
    is clients 0
    mariadb --no-defaults -h127.0.0.1 -P$PORT -uroot -e "INSERT INTO d.t VALUES (104, 0)" 2>/dev/null &
    waiting=$!
    is wait_sessions 1
    sleep 0.2
    seen=$(sql $PORT "SELECT COUNT(*) FROM d.t WHERE id = 104")
    [ "$POINT $seen" = "AFTER_SYNC 0" ] || [ "$POINT $seen" = "AFTER_COMMIT 1" ] || fail "$POINT: others see $seen rows"
    id=$(sql $PORT "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync%'")
    sql $PORT "KILL $id"
    wait $waiting || true
    sql $REPLICA "START SLAVE IO_THREAD"
    is wait_sessions 0
    [ "$(sql $PORT "SELECT COUNT(*) FROM d.t WHERE id = 104")" = 1 ] || fail "what was killed is gone"

    # Whatever a client was told before a kill -9 is on the replica, even if the source never comes back.
    next=1000
    for cycle in $(seq "$CYCLES"); do
        write_for_a_while $cycle
        [ "$(status status) $(status no_tx)" = "ON 0" ] || [ "$cycle" = 1 ] || fail "semi-synchronous replication went off"
        kill -9 "$SOURCE"
        wait "$SOURCE" 2>/dev/null || true
        applied
        told_is_held "$POINT, kill $cycle"
        start_source
        sql $REPLICA "STOP SLAVE; START SLAVE"
        is clients 1
        is status ON
    done
    sql $PORT "INSERT INTO d.t VALUES (99, 99)"
    applied
    [ "$(sql $PORT "SELECT COUNT(*), SUM(id), SUM(v) FROM d.t")" = "$(sql $REPLICA "SELECT COUNT(*), SUM(id), SUM(v) FROM d.t")" ] || fail "source and replica differ"
    stop_all
    rm -rf "$WORK"/mariadb-*
done
}

# from KIND: Highkey as the replica of highkey or mariadb.
from() {
    local kind=$1 options=(--rpl-semi-sync-master-enabled=1 --rpl-semi-sync-master-timeout=60000) change
    rm -rf "$WORK"/highkey-* "$WORK"/mariadb-*
    case $kind in
        highkey)
            options+=(--log-bin --gtid-mode=ON --enforce-gtid-consistency=ON --server-id=1 --max-binlog-size=64K)
            change="SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, SOURCE_SSL_CA='$WORK/highkey-$PORT/server-cert.pem', SOURCE_SSL_VERIFY_SERVER_CERT=1"
            start_highkey $PORT "${options[@]}"
            ;;
        mariadb)
            options+=(--log-bin --server-id=1 --binlog-format=ROW --max-binlog-size=64K)
            change="MASTER_USE_GTID=slave_pos"
            start_mariadb $PORT "${options[@]}"
            ;;
    esac
    SOURCE=${SERVERS[-1]}
    start_replica
    sql $PORT "SET GLOBAL rpl_semi_sync_master_enabled=0; CREATE USER repl@localhost IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@localhost; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT); SET GLOBAL rpl_semi_sync_master_enabled=1"
    sql $REPLICA "CHANGE MASTER TO MASTER_HOST='localhost', MASTER_PORT=$PORT, MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_CONNECT_RETRY=1, $change; START SLAVE"
    is clients 1
    acknowledges ON
    is status ON

    before=$(status yes_tx)
    for id in $(seq 1 50); do sql $PORT "INSERT INTO d.t VALUES ($id, 0)"; done
    sql $PORT "CREATE TABLE d.u (id INT); BEGIN; INSERT INTO d.u VALUES (1); UPDATE d.t SET v = 1; COMMIT"
    [ "$kind" = mariadb ] || sql $PORT "XA START 'a'; INSERT INTO d.u VALUES (2); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'"
    [ "$(status status) $(status no_tx)" = "ON 0" ] || fail "semi-synchronous replication is not on"
    [ $(($(status yes_tx) - before)) -ge 52 ] || fail "$(status yes_tx) acknowledged, $before before"
    # Acknowledged is what is applied.
    [ "$(sql $REPLICA "SELECT COUNT(*), SUM(v) FROM d.t")" = "50	50" ] || fail "acknowledged before it was applied"

    # What is received and not applied is not acknowledged.
    sql $PORT "SET GLOBAL rpl_semi_sync_master_timeout=500"
    sql $REPLICA "STOP SLAVE SQL_THREAD"
    sql $PORT "INSERT INTO d.t VALUES (101, 0)"
    [ "$(status status)" = OFF ] || fail "acknowledged what is not applied"
    sql $REPLICA "START SLAVE SQL_THREAD"
    is status ON
    # A replica that holds its commits back: an open transaction has a row.
    mkfifo "$WORK/holder"
    mariadb --no-defaults -h127.0.0.1 -P$REPLICA -uroot <"$WORK/holder" >/dev/null &
    holder=$!
    exec 4>"$WORK/holder"
    echo "BEGIN; SELECT * FROM d.t WHERE id = 1 FOR UPDATE;" >&4
    sleep 0.5
    sql $PORT "UPDATE d.t SET v = 2 WHERE id = 1"
    [ "$(status status)" = OFF ] || fail "acknowledged what waits for a lock"
    exec 4>&-
    wait $holder || true
    rm "$WORK/holder"
    is status ON
    sql $REPLICA "STOP SLAVE"
    acknowledges OFF
    sql $PORT "INSERT INTO d.t VALUES (102, 0)"
    [ "$(status status)" = OFF ] || fail "no timeout without a replica"
    sql $REPLICA "START SLAVE"
    acknowledges ON
    is status ON
    sql $PORT "SET GLOBAL rpl_semi_sync_master_timeout=60000"

    # Either side is killed; the replica's commits are on the disk whatever its flush level.
    next=1000
    for cycle in $(seq "$CYCLES"); do
        sql $REPLICA "SET GLOBAL innodb_flush_log_at_trx_commit=$((cycle % 3))"
        write_for_a_while $cycle
        if [ $((cycle % 2)) = 0 ]; then
            kill -9 "$SOURCE"
            wait "$SOURCE" 2>/dev/null || true
            applied
            told_is_held "from $kind, kill $cycle of the source"
            case $kind in
                highkey) start_highkey $PORT "${options[@]}" ;;
                mariadb)
                    mariadbd --no-defaults --user=root --datadir="$WORK/mariadb-$PORT" --port=$PORT --socket="$WORK/mariadb-$PORT.sock" --bind-address=127.0.0.1 "${options[@]}" >>"$WORK/mariadb-$PORT.log" 2>&1 &
                    SERVERS+=($!)
                    wait_for $PORT
                    ;;
            esac
            SOURCE=${SERVERS[-1]}
        else
            kill -9 "$FOLLOWER"
            wait "$FOLLOWER" 2>/dev/null || true
            kill "${CLIENTS[@]}" 2>/dev/null || true
            start_replica --skip-slave-start=1
            told_is_held "from $kind, kill $cycle of the replica"
            sql $REPLICA "START SLAVE"
        fi
        acknowledges ON
        is status ON
    done
    sql $PORT "INSERT INTO d.t VALUES (99, 99)"
    [ "$(sql $PORT "SELECT COUNT(*), SUM(id), SUM(v) FROM d.t")" = "$(sql $REPLICA "SELECT COUNT(*), SUM(id), SUM(v) FROM d.t")" ] || fail "source and replica differ"
    stop_all
}

# MySQL 8.0.12 without its plugin.
from-mysql() {
    rm -rf "$WORK"/highkey-*
    start_mysql $PORT --log-bin --server-id=1
    start_replica
    sql $PORT "CREATE USER repl@'%' IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)"
    sql $REPLICA "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$PORT, MASTER_USER='repl', MASTER_PASSWORD='repl', GET_MASTER_PUBLIC_KEY=1; START SLAVE"
    for _ in $(seq 200); do
        [ "$(sql $REPLICA "SELECT COUNT(*) FROM d.t" 2>/dev/null)" = 1 ] && break
        sleep 0.05
    done
    [ "$(sql $REPLICA "SELECT COUNT(*) FROM d.t")" = 1 ] || fail "nothing comes from MySQL"
    acknowledges OFF
    stop_all
}

for which in $WHICH; do
    case $which in
        to-mariadb) to-mariadb ;;
        from-mysql) from-mysql ;;
        from-*) from "${which#from-}" ;;
    esac
    echo "$which: semi-synchronous replication holds"
done
