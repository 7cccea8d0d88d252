#!/usr/bin/env bash
# The simulated disk: a crash at every write of every script, with many fates of what was not synced.
source "$(dirname "$0")/lib.sh"
cargo test --release -p highkey-storage --lib -- --include-ignored crash the_power_goes torn_pages
