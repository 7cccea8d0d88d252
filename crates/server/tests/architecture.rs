//! The layering and the map of ARCHITECTURE.md, checked.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Names in a crate's [dependencies], without [dev-dependencies].
fn dependencies(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("a manifest");
    let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|name| !name.is_empty()).map(str::to_string).collect()
}

#[test]
fn dependencies_point_down() {
    let allowed: &[(&str, &[&str])] = &[
        ("types", &[]),
        ("storage", &["types"]),
        ("binlog", &["types"]),
        ("table", &["types", "storage", "binlog"]),
        ("sql", &["types", "table", "binlog"]),
        ("protocol", &["types"]),
        ("server", &["types", "table", "sql", "protocol", "binlog"]),
        ("lab", &[]),
    ];
    for (name, below) in allowed {
        for dependency in dependencies(name) {
            if let Some(own) = dependency.strip_prefix("highkey-") {
                assert!(below.contains(&own), "{name} depends on {own}");
            }
        }
    }
}

#[test]
fn the_engine_knows_no_runtime_and_no_sql() {
    for name in ["types", "storage", "binlog", "table"] {
        for dependency in dependencies(name) {
            assert!(
                !["tokio", "arrow", "datafusion", "sqlparser"].iter().any(|banned| dependency.starts_with(banned)),
                "{name} depends on {dependency}"
            );
        }
    }
}

#[test]
fn datafusion_is_named_in_one_folder() {
    fn visit(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                visit(&entry, found);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&entry).expect("a source file");
                // The parser is the one that DataFusion re-exports.
                if text.lines().any(|line| line.contains("datafusion::") && !line.contains("datafusion::sql::sqlparser")) {
                    found.push(entry);
                }
            }
        }
    }
    let source = root().join("crates/sql/src");
    let mut found = Vec::new();
    visit(&source, &mut found);
    for file in found {
        assert!(file.starts_with(source.join("df")), "{} names DataFusion", file.display());
    }
}

#[test]
fn the_map_names_only_paths_that_exist() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for quoted in map.split('`').skip(1).step_by(2) {
        if ["crates/", "tests/", "docs/", "scripts"].iter().any(|start| quoted.starts_with(start)) {
            assert!(root().join(quoted).exists(), "ARCHITECTURE.md names {quoted}");
        }
    }
}

#[test]
fn every_dependency_says_why() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let section = manifest.split("# Third-party").nth(1).expect("the third-party section");
    for line in section.lines().skip(1).take_while(|line| !line.starts_with('[')) {
        if line.contains('=') {
            assert!(line.contains(" # "), "no reason given: {line}");
        }
    }
}
