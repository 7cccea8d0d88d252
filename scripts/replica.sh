#!/usr/bin/env bash
# Highkey as a replica of real servers, compared row for row: replica.sh [SECONDS] [SEED] [SCENARIO...]
# Scenarios: mysql-file mysql-gtid mysql57-gtid mariadb-gtid mariadb-file; all that have their server by default. SECONDS is the load of each round.
# With the mysql- ones another MySQL follows the replica (log_replica_updates), and is compared too.
# REPLICA_PAUSE, the ms between two transactions of a connection, keeps a long load within what the replicas can follow; they have REPLICA_SECONDS to catch up.
# REPLICA_PORT moves the ports.
source "$(dirname "$0")/lib.sh"
SECONDS_PER_ROUND=${1:-10}
SEED=${2:-$RANDOM}
SCENARIOS=("${@:3}")
PORT=${REPLICA_PORT:-23850}

available() { # available SCENARIO
    case $1 in
    mysql-*) [ -x "$ORACLES/mysql-8.0.12/bin/mysqld" ] ;;
    mysql57-*) [ -x "$ORACLES/mysql-5.7.22/bin/mysqld" ] ;;
    *) command -v mariadbd >/dev/null ;;
    esac
}

sql() { # sql PORT STATEMENTS
    mariadb --no-defaults -h127.0.0.1 -P"$1" -uroot --default-character-set=utf8mb4 -Nse "$2"
}

start_source() { # start_source SCENARIO; again after a kill
    local binlog=(--server-id=1 --log-bin=binlog --binlog-format=ROW --max-binlog-size=1M)
    local data
    case $1 in
    mysql*)
        data=$WORK/mysql-$PORT
        local base=$ORACLES/mysql-8.0.12
        case $1 in
        mysql57-*) base=$ORACLES/mysql-5.7.22 ;;
        *) binlog+=(--mysqlx=OFF) ;;
        esac
        local common=(--no-defaults --basedir="$base" --datadir="$data" --lc-messages-dir="$base/share/english" --user=root)
        [ -d "$data" ] || { mkdir -p "$data"; "$base/bin/mysqld" "${common[@]}" --initialize-insecure >"$WORK/source.log" 2>&1; }
        [ "$1" = mysql-file ] || binlog+=(--gtid-mode=ON --enforce-gtid-consistency=ON)
        "$base/bin/mysqld" "${common[@]}" --port=$PORT --socket="$data.sock" --bind-address=127.0.0.1 "${binlog[@]}" >>"$WORK/source.log" 2>&1 &
        ;;
    *)
        data=$WORK/mariadb-$PORT
        [ -d "$data" ] || mariadb-install-db --no-defaults --user=root --datadir="$data" --auth-root-authentication-method=normal >"$WORK/source.log" 2>&1
        # TLS is tried here: this MySQL's own has no ciphers that are still safe.
        [ -f "$WORK/source.pem" ] || openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=source -addext basicConstraints=critical,CA:FALSE \
            -addext subjectAltName=IP:127.0.0.1 -keyout "$WORK/source.key" -out "$WORK/source.pem" 2>>"$WORK/source.log"
        binlog+=(--ssl-cert="$WORK/source.pem" --ssl-key="$WORK/source.key")
        mariadbd --no-defaults --user=root --datadir="$data" --port=$PORT --socket="$data.sock" --bind-address=127.0.0.1 "${binlog[@]}" >>"$WORK/source.log" 2>&1 &
        ;;
    esac
    SOURCE=$!
    SERVERS+=("$SOURCE")
    wait_for $PORT
}

start_replica() { # start_replica SCENARIO; again after a kill
    local options=(--server-id=2 --slave-net-timeout=10)
    case $1 in
    mysql-file) options+=(--log-bin --max-binlog-size=1M) ;;
    mysql-gtid | mysql57-gtid) options+=(--log-bin --max-binlog-size=1M --gtid-mode=ON --enforce-gtid-consistency=ON) ;;
    esac
    start_highkey $((PORT + 1)) "${options[@]}"
    REPLICA=${SERVERS[-1]}
}

start_chain() { # start_chain SCENARIO: a replica of the replica
    local from options=(--server-id=3 --log-bin=binlog --slave-net-timeout=10)
    case $1 in
    mysql-file) from="MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4" ;;
    mysql-gtid)
        options+=(--gtid-mode=ON --enforce-gtid-consistency=ON)
        from="MASTER_AUTO_POSITION=1"
        ;;
    *) return 0 ;;
    esac
    start_mysql $((PORT + 2)) "${options[@]}"
    sql $((PORT + 2)) "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$((PORT + 1)), MASTER_USER='chain', MASTER_PASSWORD='c1', MASTER_CONNECT_RETRY=1,
        MASTER_RETRY_COUNT=100000, $from; START SLAVE"
}

kill_hard() { # kill_hard PID
    kill -9 "$1"
    wait "$1" 2>/dev/null || true
}

compare() { # compare SCENARIO
    compare_with $((PORT + 1)) 'SHOW REPLICA STATUS\G'
    case $1 in
    mysql-*) compare_with $((PORT + 2)) 'SHOW SLAVE STATUS\G' ;;
    esac
    local executed port ports
    case $1 in
    mysql-gtid) ports=($((PORT + 1)) $((PORT + 2))) ;;
    mysql57-gtid) ports=($((PORT + 1))) ;;
    *) return 0 ;;
    esac
    executed=$(sql $PORT 'SELECT @@gtid_executed')
    for port in "${ports[@]}"; do
        [ "$(sql $port 'SELECT @@gtid_executed')" = "$executed" ] || { echo "port $port has not executed $executed" >&2; exit 1; }
    done
}

compare_with() { # compare_with PORT STATUS
    "$BIN/highkey-sim" replica compare --source mysql://root@127.0.0.1:$PORT --replica mysql://root@127.0.0.1:"$1" --timeout "${REPLICA_SECONDS:-120}" || {
        sql "$1" "$2" || true
        for log in "$WORK"/highkey-$((PORT + 1)).log "$WORK/source.log" "$WORK"/mysql-$((PORT + 2)).log; do
            echo "$log"
            tail -n 20 "$log" || true
        done
        exit 1
    }
}

load() { # load SEED: in the background, its id in LOAD
    "$BIN/highkey-sim" replica load --url mysql://root@127.0.0.1:$PORT --seconds "$SECONDS_PER_ROUND" --seed "$1" --defaults --pause-ms "${REPLICA_PAUSE:-0}" &
    LOAD=$!
}

follow() { # follow SCENARIO: tells the replica its source
    local how
    case $1 in
    mysql-file) how="SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4, SOURCE_PUBLIC_KEY_PATH='$WORK/mysql-$PORT/public_key.pem'" ;;
    mysql-gtid) how="SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1" ;;
    mysql57-gtid) how="SOURCE_AUTO_POSITION=1" ;;
    mariadb-gtid) how="MASTER_USE_GTID=slave_pos, MASTER_SSL=1, MASTER_SSL_CA='$WORK/source.pem'" ;;
    mariadb-file) how="MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4" ;;
    esac
    sql $((PORT + 1)) "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=$PORT, SOURCE_USER='follower', SOURCE_PASSWORD='f1', SOURCE_CONNECT_RETRY=1, $how; START REPLICA"
}

refuses_unknown_keys() { # refuses_unknown_keys SCENARIO: a password that MySQL has not seen yet goes under no key that anybody could have sent
    local errno
    case $1 in mysql-*) ;; *) return 0 ;; esac
    sql $((PORT + 1)) "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=$PORT, SOURCE_USER='follower', SOURCE_PASSWORD='f1'; START REPLICA"
    for _ in $(seq 100); do
        errno=$(mariadb --no-defaults -h127.0.0.1 -P$((PORT + 1)) -uroot -e 'SHOW REPLICA STATUS\G' | awk '/Last_IO_Errno:/ { print $2 }')
        [ "$errno" = 0 ] || break
        sleep 0.1
    done
    sql $((PORT + 1)) "STOP REPLICA"
    [ "$errno" = 2061 ] || { echo "an unknown key ends in error $errno, not 2061" >&2; exit 1; }
}

two_phases() { # two_phases SCENARIO: transactions in two phases, and a kill of the replica between the phases of one. MariaDB's have another form.
    case $1 in mysql-*) ;; *) return 0 ;; esac
    sql $PORT "CREATE DATABASE load_xa; CREATE TABLE load_xa.t (id INT PRIMARY KEY, v INT)"
    for i in 1 2 3; do
        sql $PORT "XA START 'a$i'; INSERT INTO load_xa.t VALUES ($i, 1); XA END 'a$i'; XA PREPARE 'a$i'; XA COMMIT 'a$i'"
        sql $PORT "XA START 'b$i'; INSERT INTO load_xa.t VALUES (10 + $i, 1); XA END 'b$i'; XA PREPARE 'b$i'; XA ROLLBACK 'b$i'"
        sql $PORT "XA START 'c$i'; UPDATE load_xa.t SET v = v + 1; XA END 'c$i'; XA COMMIT 'c$i' ONE PHASE"
    done
    sql $PORT "XA START 'k'; INSERT INTO load_xa.t VALUES (100, 1); XA END 'k'; XA PREPARE 'k'"
    local port
    for port in $((PORT + 1)) $((PORT + 2)); do
        for _ in $(seq 100); do
            [ -z "$(sql $port 'XA RECOVER')" ] || break
            sleep 0.1
        done
    done
    kill_hard "$REPLICA"
    start_replica "$1"
    [ -n "$(sql $((PORT + 1)) 'XA RECOVER')" ] || { echo "what was prepared is lost on the replica" >&2; exit 1; }
    sql $PORT "XA COMMIT 'k'"
    compare "$1"
    [ -z "$(sql $((PORT + 1)) 'XA RECOVER')$(sql $((PORT + 2)) 'XA RECOVER')" ] || { echo "something is still prepared" >&2; exit 1; }
}

round() { # round SCENARIO
    echo "replica of $1, seed $SEED"
    rm -rf "$WORK"/mysql-* "$WORK"/mariadb-* "$WORK"/highkey-*
    start_source "$1"
    start_replica "$1"
    sql $((PORT + 1)) "SET sql_log_bin = 0; CREATE USER chain@localhost IDENTIFIED WITH mysql_native_password BY 'c1'; GRANT REPLICATION SLAVE ON *.* TO chain@localhost"
    start_chain "$1"
    # In MySQL with its default plugin, caching_sha2_password; in MariaDB with its default and with the one that only it has, which the replica could not have an account of.
    case $1 in
    mariadb-file) sql $PORT "INSTALL SONAME 'auth_ed25519'; SET sql_log_bin = 0; CREATE USER follower@localhost IDENTIFIED VIA ed25519 USING PASSWORD('f1'); GRANT REPLICATION SLAVE ON *.* TO follower@localhost" ;;
    *) sql $PORT "CREATE USER follower@localhost IDENTIFIED BY 'f1'; GRANT REPLICATION SLAVE ON *.* TO follower@localhost" ;;
    esac
    refuses_unknown_keys "$1"
    follow "$1"

    # At rest, then under load.
    load "$SEED"
    wait $LOAD
    compare "$1"

    # Stops and starts of its threads, and a statement that needs both at rest.
    load $((SEED + 1))
    for _ in 1 2 3; do
        sleep $((SECONDS_PER_ROUND / 4 + 1))
        sql $((PORT + 1)) "STOP REPLICA SQL_THREAD; START REPLICA SQL_THREAD; STOP REPLICA IO_THREAD; START REPLICA; STOP REPLICA; START REPLICA"
    done
    wait $LOAD
    compare "$1"

    two_phases "$1"

    # A row that is not there stops the applier, as in MySQL; when it is, it goes on where it was.
    sql $PORT "CREATE TABLE load_a.missing (id INT PRIMARY KEY, n INT); INSERT INTO load_a.missing VALUES (1, 1)"
    compare "$1"
    sql $((PORT + 1)) "SET sql_log_bin = 0; DELETE FROM load_a.missing"
    sql $PORT "UPDATE load_a.missing SET n = 2"
    for _ in $(seq 100); do
        errno=$(mariadb --no-defaults -h127.0.0.1 -P$((PORT + 1)) -uroot -e 'SHOW REPLICA STATUS\G' | awk '/Last_SQL_Errno:/ { print $2 }')
        [ "$errno" = 0 ] || break
        sleep 0.1
    done
    [ "$errno" = 1032 ] || { echo "a missing row ends in error $errno, not 1032" >&2; exit 1; }
    sql $((PORT + 1)) "SET sql_log_bin = 0; INSERT INTO load_a.missing VALUES (1, 1); START REPLICA"
    compare "$1"

    # Kill -9 of the replica: no transaction is lost, none is done twice.
    load $((SEED + 2))
    for _ in $(seq $((SECONDS_PER_ROUND / 10 + 5))); do
        sleep "$(awk "BEGIN { print $SECONDS_PER_ROUND / ($SECONDS_PER_ROUND / 10 + 9) + 0.3 }")"
        kill -0 $LOAD 2>/dev/null || break
        kill_hard "$REPLICA"
        start_replica "$1"
    done
    wait $LOAD
    compare "$1"

    # Kill -9 of the source. Its log is synced with every commit by default in MySQL, and MariaDB's recovery undoes what it has not logged.
    load $((SEED + 3))
    for _ in $(seq $((SECONDS_PER_ROUND / 30 + 2))); do
        sleep "$(awk "BEGIN { print $SECONDS_PER_ROUND / ($SECONDS_PER_ROUND / 30 + 4) + 0.5 }")"
        kill -0 $LOAD 2>/dev/null || break
        kill_hard "$SOURCE"
        start_source "$1"
    done
    wait $LOAD
    compare "$1"
    stop_all
}

if [ ${#SCENARIOS[@]} -eq 0 ]; then
    for scenario in mysql-gtid mysql-file mysql57-gtid mariadb-gtid mariadb-file; do
        available $scenario && SCENARIOS+=($scenario)
    done
fi
[ ${#SCENARIOS[@]} -gt 0 ] || { echo "no source to replicate from: scripts/oracles.sh installs them" >&2; exit 1; }
for scenario in "${SCENARIOS[@]}"; do
    round "$scenario"
done
echo "replicas are equal to their sources, and those of theirs"
