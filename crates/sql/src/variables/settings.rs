//! Options before the server runs: defaults, then the configuration file, then the command line.

use std::path::Path;

use highkey_types::{Collation, Value};

use super::{Effect, Kind, Scope, VarId, VarValue, Values, convert, find, show};

/// An option that cannot be: unknown, or with a value that does not fit. Displays as one line for the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(pub String);

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

/// The global values that the server starts with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: Values,
    warnings: Vec<String>,
    given: Vec<VarId>,
}

/// Options of mysqld that are no variables, and what they mean as one.
const OPTIONS: &[(&str, &str)] =
    &[("transaction-isolation", "transaction_isolation"), ("character-set-server", "character_set_server"), ("default-time-zone", "time_zone"), ("bind", "bind_address"), ("datadir", "datadir")];

/// Options that are no switches and may be without a value all the same: ON.
const OPTIONAL: [&str; 2] = ["enforce_gtid_consistency", "event_scheduler"];

/// What MySQL says where `gtid_mode` is ON and this is not.
pub const GTIDS_NEED_CONSISTENCY: &str = "GTID_MODE = ON requires ENFORCE_GTID_CONSISTENCY = ON.";

/// Half of the buffer pool's size unless it is given.
const COLUMN_CACHE: &str = "highkey_column_cache_size";

impl Settings {
    /// Sets an option as mysqld takes them: dashes or underscores, prefixes `loose-`, `skip-`, `enable-`, `disable-`, numbers with K, M, G,
    /// T, P, E. `None` is an option without `=value`, a switch turned on.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SettingError> {
        let (mapped, loose) = mapped(name);
        let mapped = mapped.as_str();
        let (id, negated) = match find(mapped) {
            Some(id) => (id, false),
            None => {
                let off = mapped.strip_prefix("skip_").or_else(|| mapped.strip_prefix("disable_"));
                match (off.and_then(find), mapped.strip_prefix("enable_").and_then(find)) {
                    (Some(id), _) => (id, true),
                    (_, Some(id)) => (id, false),
                    _ if loose => {
                        self.warnings.push(format!("unknown variable '{name}' ignored"));
                        return Ok(());
                    }
                    _ => return Err(SettingError(unknown(name, value))),
                }
            }
        };
        let definition = id.definition();
        if definition.scope == Scope::SessionOnly {
            return Err(SettingError(format!("'{}' belongs to a session and cannot be given at start", definition.name)));
        }
        let wrong = |value: &str, why: &str| SettingError(format!("option '{name}': '{value}' {why}"));
        let input = match (value, definition.kind) {
            (None, _) if OPTIONAL.contains(&definition.name) => Value::Text(if negated { "OFF" } else { "ON" }.into()),
            (None, Kind::Bool) => Value::Int(i64::from(!negated)),
            (None, _) if negated => Value::Text("".into()),
            (None, _) => return Err(SettingError(format!("option '{name}' requires an argument"))),
            (Some(v), Kind::UInt(..)) => Value::UInt(sized(v).ok_or_else(|| wrong(v, "is not a number"))?),
            (Some(v), Kind::Double(..)) => Value::Double(v.parse().map_err(|_| wrong(v, "is not a number"))?),
            (Some(v), Kind::NullableText) if v.eq_ignore_ascii_case("null") => Value::Null,
            (Some(v), Kind::Enum(_) | Kind::Set(_) | Kind::SqlMode) => match v.parse() {
                Ok(n) => Value::UInt(n),
                Err(_) => Value::Text(v.into()),
            },
            (Some(v), _) => Value::Text(v.into()),
        };
        let mut warnings = Vec::new();
        let converted = convert(id, &input, &mut warnings).map_err(|e| SettingError(format!("option '{name}': {}", e.message)))?;
        if !warnings.is_empty() {
            self.warnings.push(format!("option '{name}': value {} adjusted to {}", value.unwrap_or(""), show(id, &converted).unwrap_or_default()));
        }
        match definition.effect {
            Effect::Ignored => self.warnings.push(format!("option '{}' is accepted and has no effect in Highkey", definition.name)),
            Effect::Fact if *self.values.get(id) != converted => {
                self.warnings.push(format!("option '{}' stays {} in Highkey", definition.name, show(id, self.values.get(id)).unwrap_or("NULL".to_owned())));
                if !matches!(definition.name, "server_id" | "basedir" | "plugin_dir" | "license" | "version_comment" | "server_uuid") {
                    return Ok(());
                }
            }
            _ => {}
        }
        // Options that mysqld takes several times: one item each, or all in one.
        let converted = match (&converted, self.values.get(id)) {
            (VarValue::Text(item), VarValue::Text(before)) if definition.name.starts_with("replicate_") && self.given.contains(&id) => VarValue::Text(format!("{before},{item}").into()),
            _ => converted,
        };
        self.store(id, converted);
        Ok(())
    }

    /// Whether an option needs a value: without `=` the argument behind it.
    pub fn takes_value(name: &str) -> bool {
        find(&mapped(name).0).is_some_and(|id| !matches!(id.definition().kind, Kind::Bool) && !OPTIONAL.contains(&id.definition().name))
    }

    /// What keeps a server from starting with these values.
    pub fn check(&self) -> Result<(), SettingError> {
        if self.text("gtid_mode") == "ON" && self.text("enforce_gtid_consistency") != "ON" {
            return Err(SettingError(GTIDS_NEED_CONSISTENCY.to_owned()));
        }
        Ok(())
    }

    fn store(&mut self, id: VarId, value: VarValue) {
        // `--character-set-server` behind `--collation-server` leaves a collation that is of the character set, as mysqld does.
        let kept = (id.definition().name == "character_set_server" && self.is_given("collation_server"))
            .then(|| Collation::by_name(&self.values.text("collation_server")))
            .flatten()
            .filter(|collation| matches!(&value, VarValue::Text(name) if collation.charset.name() == &**name));
        if let (VarValue::UInt(bytes), "innodb_buffer_pool_size") = (&value, id.definition().name)
            && !self.is_given(COLUMN_CACHE)
        {
            // As by default: who says how large the pool is says how much memory the rows may have in all.
            self.set_internal(COLUMN_CACHE, &(bytes / 2).to_string());
        }
        self.values.set(id, value.clone());
        self.given.push(id);
        if kept.is_none() {
            super::couple(id, &value, &mut self.values);
        }
    }

    /// True if the option was given, so that it is not the default.
    pub fn is_given(&self, name: &str) -> bool {
        find(name).is_some_and(|id| self.given.contains(&id))
    }

    /// Sets a value the server itself decided (its port, data directory, certificates).
    pub fn set_internal(&mut self, name: &str, value: &str) {
        let id = find(name).unwrap_or_else(|| panic!("no variable {name} in the table"));
        let value = match id.definition().kind {
            Kind::Bool => VarValue::Bool(value == "ON" || value == "1"),
            Kind::UInt(..) => VarValue::UInt(value.parse().expect("a number")),
            _ => VarValue::Text(value.into()),
        };
        self.values.set(id, value);
    }

    /// Applies a `my.cnf`: the groups [mysqld], [server], [mariadb] and [highkey]. Other groups are for other programs.
    pub fn apply_config(&mut self, text: &str, file: &str) -> Result<(), SettingError> {
        let mut ours = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let at = |message: &str| SettingError(format!("{file}:{}: {message}", number + 1));
            if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
                continue;
            }
            if line.starts_with("!include") {
                return Err(at("!include and !includedir are not supported"));
            }
            if let Some(group) = line.strip_prefix('[') {
                let group = group.split(']').next().unwrap_or("").trim().to_ascii_lowercase();
                ours = matches!(group.as_str(), "mysqld" | "server" | "mariadb" | "mariadbd" | "highkey") || group.starts_with("mysqld-8");
                continue;
            }
            if !ours {
                continue;
            }
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name.trim(), Some(unquote(value.trim()))),
                None => (line, None),
            };
            self.set(name, value.as_deref()).map_err(|e| at(&e.0))?;
        }
        Ok(())
    }

    /// About options that are accepted and have no effect here, or were adjusted.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub fn u64(&self, name: &str) -> u64 {
        self.values.u64(name)
    }

    pub fn bool(&self, name: &str) -> bool {
        self.values.bool(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.values.text(name)
    }

    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Where `secure_file_priv` and friends resolve relative paths from.
    pub fn datadir(&self) -> std::path::PathBuf {
        Path::new(&self.values.text("datadir")).to_owned()
    }
}

/// The variable that an option means, and whether it may be unknown.
fn mapped(name: &str) -> (String, bool) {
    let plain = name.trim().replace('-', "_").to_ascii_lowercase();
    let (plain, loose) = match plain.strip_prefix("loose_") {
        Some(rest) => (rest.to_owned(), true),
        None => (plain, false),
    };
    let variable = OPTIONS.iter().find(|(option, _)| option.replace('-', "_") == plain).map(|(_, variable)| (*variable).to_owned());
    (variable.unwrap_or(plain), loose)
}

fn unknown(name: &str, value: Option<&str>) -> String {
    match value {
        Some(v) => format!("unknown variable '{name}={v}'"),
        None => format!("unknown option '--{name}'"),
    }
}

/// `128M` and the like.
fn sized(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        'P' => 50,
        'E' => 60,
        _ => return text.parse().ok(),
    };
    let number: u64 = text[..text.len() - 1].trim().parse().ok()?;
    number.checked_mul(1 << shift)
}

/// Values may be quoted, and end at an unquoted `#`.
fn unquote(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            if let Some(end) = rest.find(quote) {
                return rest[..end].to_owned();
            }
        }
    }
    match value.find(" #") {
        Some(end) => value[..end].trim_end().to_owned(),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_mysqld_reads_them() {
        let mut s = Settings::default();
        s.set("innodb-buffer-pool-size", Some("64M")).unwrap();
        assert_eq!(s.u64("innodb_buffer_pool_size"), 64 << 20);
        s.set("skip-networking", None).unwrap();
        assert!(s.bool("skip_networking"));
        s.set("skip-innodb-doublewrite", None).unwrap();
        assert!(!s.bool("innodb_doublewrite"));
        assert_eq!(s.set("max_conections", Some("5")).unwrap_err().0, "unknown variable 'max_conections=5'");
        assert!(s.set("max_connections", Some("many")).is_err());
        assert!(s.set("port", None).is_err());
        s.set("gtid-mode", Some("ON")).unwrap();
        assert_eq!(s.check().unwrap_err().0, GTIDS_NEED_CONSISTENCY);
        s.set("enforce-gtid-consistency", None).unwrap();
        assert_eq!((s.text("enforce_gtid_consistency").as_str(), s.check()), ("ON", Ok(())));
        s.set("enforce-gtid-consistency", Some("false")).unwrap();
        assert!(s.check().is_err());
        s.set("enforce-gtid-consistency", Some("TRUE")).unwrap();
        assert_eq!(s.check(), Ok(()));
        s.set("skip-event-scheduler", None).unwrap();
        assert_eq!(s.text("event_scheduler"), "OFF");
        s.set("event-scheduler", None).unwrap();
        assert_eq!(s.text("event_scheduler"), "ON");
        assert!(!Settings::takes_value("enforce-gtid-consistency") && !Settings::takes_value("event-scheduler"));
        assert!(Settings::takes_value("transaction-isolation") && Settings::takes_value("loose-max-connections"));
        assert!(!Settings::takes_value("skip-networking") && !Settings::takes_value("gtid") && !Settings::takes_value("read-only"));
        s.set("replicate-do-db", Some("a")).unwrap();
        s.set("replicate-do-db", Some("b")).unwrap();
        assert_eq!(s.text("replicate_do_db"), "a,b");
        s.set("loose-nothing", Some("1")).unwrap();
        s.set("innodb_adaptive_hash_index", Some("ON")).unwrap();
        assert_eq!(s.warnings().len(), 2);
    }

    #[test]
    fn the_column_cache_follows_the_pool_unless_it_is_given() {
        let mut s = Settings::default();
        s.set("innodb-buffer-pool-size", Some("64M")).unwrap();
        assert_eq!(s.u64("highkey_column_cache_size"), 32 << 20);
        s.set("highkey-column-cache-size", Some("5M")).unwrap();
        s.set("innodb-buffer-pool-size", Some("128M")).unwrap();
        assert_eq!(s.u64("highkey_column_cache_size"), 5 << 20);
    }

    #[test]
    fn a_configuration_file_names_the_line_that_is_wrong() {
        let mut s = Settings::default();
        s.apply_config("# c\n[client]\nport=1\n[mysqld]\nport = 3310 # ours\nsocket=\"/tmp/a b\"\n", "my.cnf").unwrap();
        assert_eq!(s.u64("port"), 3310);
        assert_eq!(s.text("socket"), "/tmp/a b");
        assert_eq!(s.apply_config("[mysqld]\n\nnope\n", "my.cnf").unwrap_err().0, "my.cnf:3: unknown option '--nope'");
    }
}
