#!/usr/bin/env bash
# Everything that CI runs: unit, model and simulation tests, golden answers over the wire, sessions beside each other, random histories, a short crash run.
source "$(dirname "$0")/lib.sh"
cargo test --release --workspace
cargo build --release --workspace
start_highkey 23811 --secure-file-priv=
for protocol in text patterns prepared; do
    for executor in fast datafusion; do
        echo "golden answers: $protocol protocol, executor $executor"
        "$BIN/highkey-sim" golden run --url mysql://root@127.0.0.1:23811 --protocol $protocol --executor $executor tests/golden/*.slt
    done
done
sessions() {
    echo "sessions: $*"
    "$BIN/highkey-sim" sessions run --url mysql://root@127.0.0.1:23811 "$@"
}
sessions --protocol text --executor fast tests/sessions/*.recorded
sessions --protocol patterns --executor fast tests/sessions/*.recorded
sessions --protocol prepared --executor fast tests/sessions/*.recorded
sessions --protocol text --executor datafusion tests/sessions/hermitage.recorded tests/sessions/gaps.recorded
"$BIN/highkey-sim" histories --url mysql://root@127.0.0.1:23811 --transactions 60
stop_all
scripts/crash.sh 5 1
