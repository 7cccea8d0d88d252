#!/usr/bin/env bash
# Latches, group commit, trees and older versions under shuttle's random schedules. schedules.sh [TEST]
source "$(dirname "$0")/lib.sh"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/shuttle
cargo test --release -p highkey-storage --features shuttle --lib -- schedules "$@"
