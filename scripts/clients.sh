#!/usr/bin/env bash
# Runs real clients against the built server, or against CLIENTS_PORT=n, and prints how many checks passed and failed.
# Needs python3 with venv, go, node with npm, a JDK and Maven; the clients themselves come from their registries.
source "$(dirname "$0")/lib.sh"
PORT=${CLIENTS_PORT:-23821}
HOME_OF_CLIENTS=$HOME/.cache/highkey-clients
OUT=$WORK/clients.out
mkdir -p "$HOME_OF_CLIENTS"
cp -r tests/clients/. "$HOME_OF_CLIENTS"
[ -n "${CLIENTS_PORT:-}" ] || start_highkey "$PORT" --log-bin --gtid-mode=ON --enforce-gtid-consistency=ON --binlog-row-metadata=FULL --local-infile=1 --secure-file-priv="$WORK"
cd "$HOME_OF_CLIENTS"

[ -x venv/bin/python ] || python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check -r requirements.txt
npm install --silent --no-audit --no-fund >/dev/null
go build -o go-client .
mkdir -p jars
[ -f jars/mysql-connector-j-8.4.0.jar ] || mvn -q dependency:copy -Dartifact=com.mysql:mysql-connector-j:8.4.0 -DoutputDirectory=jars
[ -f jars/mariadb-java-client-3.4.1.jar ] || mvn -q dependency:copy -Dartifact=org.mariadb.jdbc:mariadb-java-client:3.4.1 -DoutputDirectory=jars
javac -cp 'jars/*' Clients.java
[ -d debezium/jars ] || (cd debezium && mvn -q dependency:copy-dependencies -DoutputDirectory=jars)
javac -cp 'debezium/jars/*' debezium/Follow.java

# A program that ends early is a failed check of its own.
run() {
    local name=$1
    shift
    timeout 300 "$@" "$PORT" >>"$OUT" 2>"$WORK/$name.err" || { echo "FAIL $name: exit code $?" >>"$OUT"; tail -n 20 "$WORK/$name.err" >&2; }
}
run python venv/bin/python clients.py
run go ./go-client
run node node clients.js
run orms node orms.js
run java java -cp '.:jars/*' Clients
run debezium java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp 'debezium:debezium/jars/*' Follow

grep '^FAIL' "$OUT" || true
failed=$(grep -c '^FAIL' "$OUT" || true)
echo "$(grep -c '^ok' "$OUT") passed, $failed failed"
[ "$failed" -eq 0 ]
