#!/usr/bin/env bash
# The page code under Miri: undefined behaviour, and races of what threads share. Minutes. miri.sh [TEST...]
source "$(dirname "$0")/lib.sh"
rustup toolchain list | grep -q '^nightly' || rustup toolchain install nightly --profile minimal
rustup component add miri rust-src --toolchain nightly
TESTS=("$@")
[ ${#TESTS[@]} -gt 0 ] || TESTS=(page:: wal::record:: space::state:: buffer::latch::)
# A directory of its own: Miri's artefacts do not mix with others.
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri
cargo +nightly miri test -p highkey-storage --lib -- "${TESTS[@]}"
