#!/usr/bin/env bash
# Random histories at every isolation level, checked for what the level forbids: histories.sh [RUNS] [SEED]
source "$(dirname "$0")/lib.sh"
start_highkey 23812
for seed in $(seq "${2:-1}" $((${2:-1} + ${1:-1} - 1))); do
    "$BIN/highkey-sim" histories --url mysql://root@127.0.0.1:23812 --seed "$seed"
done
