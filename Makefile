# One target directory for every clone: DataFusion's first release build takes about 20 minutes on 2 cores.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/highkey-target

.PHONY: test
test:
	cargo test --release --workspace
