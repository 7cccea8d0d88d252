#!/usr/bin/env bash
# Everything that CI runs: unit, model and simulation tests, golden answers over the wire, a short crash run.
source "$(dirname "$0")/lib.sh"
cargo test --release --workspace
cargo build --release --workspace
start_highkey 33811
for protocol in text prepared; do
    for executor in fast datafusion; do
        echo "golden answers: $protocol protocol, executor $executor"
        "$BIN/highkey-sim" golden run --url mysql://root@127.0.0.1:33811 --protocol $protocol --executor $executor tests/golden/*.slt
    done
done
stop_all
scripts/crash.sh 5 1
