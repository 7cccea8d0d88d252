//! System variables: one table (`table.rs`), their values, the conversion of what SET assigns, and what command line and
//! configuration file make of them (`settings.rs`).

mod settings;
mod sql_mode;
mod table;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use highkey_types::{Charset, Collation, MySqlError, TimeZone, Value, Warning};

pub use settings::{GTIDS_NEED_CONSISTENCY, SettingError, Settings};
pub use sql_mode::SqlModes;

use crate::session::error;

/// Who has a value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Global,
    /// Every session has its own, starting as the global value.
    Both,
    SessionOnly,
}

/// What a variable may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Bool,
    /// Inclusive range; values outside are cut with warning 1292.
    UInt(u64, u64),
    Double(f64, f64),
    /// By name in any case, or by position.
    Enum(&'static [&'static str]),
    /// Any of these, by name in any case with commas between them, or by bits.
    Set(&'static [&'static str]),
    Text,
    NullableText,
    Charset,
    NullableCharset,
    Collation,
    SqlMode,
    TimeZone,
    /// By name; 0 is en_US, as the output of `mysqlbinlog` has it.
    Locale,
    /// A storage engine: InnoDB is the name of ours.
    Engine,
}

/// Whether anything here listens to a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Real,
    /// States something true about this server; setting it changes nothing.
    Fact,
    /// Accepted for scripts and configuration files, without effect: SET warns, SHOW VARIABLES leaves it out.
    Ignored,
}

/// One line of the table.
#[derive(Debug)]
pub struct Definition {
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    pub default: &'static str,
    /// Whether SET may change it.
    pub dynamic: bool,
    pub effect: Effect,
}

/// A variable's value.
#[derive(Clone, Debug, PartialEq)]
pub enum VarValue {
    Null,
    Bool(bool),
    UInt(u64),
    Double(f64),
    Text(Arc<str>),
}

/// A variable's position in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarId(usize);

impl VarId {
    pub fn definition(self) -> &'static Definition {
        &table::DEFINITIONS[self.0]
    }
}

static BY_NAME: LazyLock<HashMap<&'static str, VarId>> = LazyLock::new(|| {
    let mut names: HashMap<_, _> = table::DEFINITIONS.iter().enumerate().map(|(i, d)| (d.name, VarId(i))).collect();
    for (alias, name) in table::ALIASES {
        names.insert(alias, names[name]);
    }
    names
});

/// Finds a variable by name, in any case.
pub fn find(name: &str) -> Option<VarId> {
    match BY_NAME.get(name) {
        Some(id) => Some(*id),
        None => BY_NAME.get(name.to_ascii_lowercase().as_str()).copied(),
    }
}

/// Every variable, in name order.
pub fn all() -> impl Iterator<Item = VarId> {
    (0..table::DEFINITIONS.len()).map(VarId)
}

/// SET_VAR may set it.
pub fn is_hintable(id: VarId) -> bool {
    table::HINTABLE.contains(&id.definition().name)
}

/// Variables that SHOW VARIABLES has under their older names too: MariaDB's replicas ask for these.
pub fn also_shown() -> impl Iterator<Item = (&'static str, VarId)> {
    table::ALIASES.iter().filter(|(alias, _)| alias.starts_with("rpl_semi_sync_")).map(|(alias, name)| (*alias, BY_NAME[name]))
}

/// The values of all variables, by position in the table.
#[derive(Clone, Debug)]
pub struct Values {
    values: Vec<VarValue>,
}

impl Default for Values {
    fn default() -> Self {
        Values { values: table::DEFINITIONS.iter().map(default_value).collect() }
    }
}

impl Values {
    pub fn get(&self, id: VarId) -> &VarValue {
        &self.values[id.0]
    }

    pub fn set(&mut self, id: VarId, value: VarValue) {
        self.values[id.0] = value;
    }

    fn named(&self, name: &str) -> &VarValue {
        self.get(find(name).unwrap_or_else(|| panic!("no variable {name} in the table")))
    }

    /// A number or switch; 0 for what is neither.
    pub fn u64(&self, name: &str) -> u64 {
        match self.named(name) {
            VarValue::UInt(n) => *n,
            VarValue::Bool(b) => u64::from(*b),
            VarValue::Double(d) => *d as u64,
            _ => 0,
        }
    }

    pub fn f64(&self, name: &str) -> f64 {
        match self.named(name) {
            VarValue::Double(d) => *d,
            _ => self.u64(name) as f64,
        }
    }

    pub fn bool(&self, name: &str) -> bool {
        self.u64(name) != 0
    }

    /// As SHOW VARIABLES shows it; empty for NULL.
    pub fn text(&self, name: &str) -> String {
        let id = find(name).unwrap_or_else(|| panic!("no variable {name} in the table"));
        show(id, self.get(id)).unwrap_or_default()
    }

    /// True if the variable is NULL.
    pub fn is_null(&self, name: &str) -> bool {
        *self.named(name) == VarValue::Null
    }
}

/// A value as SHOW VARIABLES shows it.
pub fn show(id: VarId, value: &VarValue) -> Option<String> {
    match value {
        VarValue::Null => None,
        VarValue::Bool(b) => Some(if *b { "ON" } else { "OFF" }.to_owned()),
        VarValue::UInt(n) => Some(n.to_string()),
        VarValue::Double(d) => {
            debug_assert!(matches!(id.definition().kind, Kind::Double(..)));
            Some(format!("{d:.6}"))
        }
        VarValue::Text(t) => Some(t.to_string()),
    }
}

/// A value as `SELECT @@name` gives it: switches are 0 and 1.
pub fn to_value(value: &VarValue) -> Value {
    match value {
        VarValue::Null => Value::Null,
        VarValue::Bool(b) => Value::Int(i64::from(*b)),
        VarValue::UInt(n) => Value::UInt(*n),
        VarValue::Double(d) => Value::Double(*d),
        VarValue::Text(t) => Value::Text(t.clone()),
    }
}

/// The value that SET assigns: checked for the variable's type, cut to its range with a warning.
pub fn convert(id: VarId, value: &Value, warnings: &mut Vec<Warning>) -> Result<VarValue, MySqlError> {
    let definition = id.definition();
    let name = definition.name;
    // After SET NAMES binary literals are bytes.
    let text = match value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(Value::text),
        _ => None,
    };
    let value = text.as_ref().unwrap_or(value);
    let shown = || match value {
        Value::Null => "NULL".to_owned(),
        other => plain(other),
    };
    let refuse = || Err(error::wrong_value_for_var(name, &shown()));
    match definition.kind {
        Kind::Bool => match value {
            Value::Int(n @ 0..=1) => Ok(VarValue::Bool(*n == 1)),
            Value::UInt(n @ 0..=1) => Ok(VarValue::Bool(*n == 1)),
            Value::Text(t) => match t.to_ascii_uppercase().as_str() {
                "ON" | "TRUE" | "YES" | "1" => Ok(VarValue::Bool(true)),
                "OFF" | "FALSE" | "NO" | "0" => Ok(VarValue::Bool(false)),
                _ => refuse(),
            },
            Value::Int(_) | Value::UInt(_) => refuse(),
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::UInt(min, max) => {
            let (number, negative) = match value {
                Value::Int(n) if *n < 0 => (min, true),
                Value::Int(n) => (*n as u64, false),
                Value::UInt(n) => (*n, false),
                _ => return Err(error::wrong_type_for_var(name)),
            };
            let cut = number.clamp(min, max);
            if cut != number || negative {
                warnings.push(error::warning(1292, format!("Truncated incorrect {name} value: '{}'", shown())));
            }
            Ok(VarValue::UInt(cut))
        }
        Kind::Double(min, max) => {
            let number = match value {
                Value::Int(n) => *n as f64,
                Value::UInt(n) => *n as f64,
                Value::Float(f) => f64::from(*f),
                Value::Double(d) => *d,
                Value::Decimal(d) => d.to_string().parse().unwrap_or(0.0),
                _ => return Err(error::wrong_type_for_var(name)),
            };
            if number < min || number > max {
                warnings.push(error::warning(1292, format!("Truncated incorrect {name} value: '{}'", shown())));
            }
            Ok(VarValue::Double(number.clamp(min, max)))
        }
        Kind::Enum(names) => match value {
            Value::Text(t) => {
                // One of them takes a switch's other words, too.
                let word = match t.to_ascii_uppercase().as_str() {
                    "TRUE" if name == "enforce_gtid_consistency" => "ON",
                    "FALSE" if name == "enforce_gtid_consistency" => "OFF",
                    _ => &**t,
                };
                match names.iter().find(|n| n.eq_ignore_ascii_case(word)) {
                    Some(n) => Ok(VarValue::Text(Arc::from(*n))),
                    None => refuse(),
                }
            }
            Value::Int(_) | Value::UInt(_) => match number(value).and_then(|n| names.get(n as usize)) {
                Some(n) => Ok(VarValue::Text(Arc::from(*n))),
                None => refuse(),
            },
            Value::Null => refuse(),
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::Set(names) => {
            let bits = match value {
                Value::Text(t) => {
                    let position = |word: &str| names.iter().position(|name| name.eq_ignore_ascii_case(word));
                    let words = t.split(',').map(str::trim).filter(|word| !word.is_empty());
                    match words.map(|word| position(word).map(|at| 1_u64 << at)).try_fold(0, |bits, bit| bit.map(|bit| bits | bit)) {
                        Some(bits) => bits,
                        None => return refuse(),
                    }
                }
                Value::Int(_) | Value::UInt(_) => match number(value).filter(|bits| bits >> names.len() == 0) {
                    Some(bits) => bits,
                    None => return refuse(),
                },
                Value::Null => return refuse(),
                _ => return Err(error::wrong_type_for_var(name)),
            };
            let chosen: Vec<&str> = names.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, name)| *name).collect();
            Ok(VarValue::Text(chosen.join(",").into()))
        }
        Kind::Text => match value {
            Value::Null => refuse(),
            Value::Text(t) => Ok(VarValue::Text(t.clone())),
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::NullableText => match value {
            Value::Null => Ok(VarValue::Null),
            Value::Text(t) => Ok(VarValue::Text(t.clone())),
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::Charset | Kind::NullableCharset => match value {
            Value::Null if matches!(definition.kind, Kind::NullableCharset) => Ok(VarValue::Null),
            Value::Null => refuse(),
            Value::Text(t) => match Charset::by_name(t) {
                Some(charset) if name == "character_set_client" && charset.min_bytes() > 1 => refuse(),
                Some(charset) => Ok(VarValue::Text(Arc::from(charset.name()))),
                None => Err(error::unknown_character_set(t)),
            },
            Value::Int(_) | Value::UInt(_) => match number(value).and_then(|n| Collation::by_id(n as u16)) {
                Some(collation) if name == "character_set_client" && collation.charset.min_bytes() > 1 => refuse(),
                Some(collation) => Ok(VarValue::Text(Arc::from(collation.charset.name()))),
                None => Err(error::unknown_character_set(&shown())),
            },
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::Collation => match value {
            Value::Null => refuse(),
            Value::Text(t) => match Collation::by_name(t) {
                Some(collation) => allowed_collation(name, collation),
                None => Err(error::unknown_collation(t)),
            },
            Value::Int(_) | Value::UInt(_) => match number(value).and_then(|n| Collation::by_id(n as u16)) {
                Some(collation) => allowed_collation(name, collation),
                None => Err(error::unknown_collation(&shown())),
            },
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::SqlMode => {
            let modes = match value {
                Value::Text(t) => SqlModes::parse(t)?,
                Value::Int(_) | Value::UInt(_) => match number(value) {
                    Some(bits) => SqlModes::from_bits(bits)?,
                    None => return refuse(),
                },
                Value::Null => return refuse(),
                _ => return Err(error::wrong_type_for_var(name)),
            };
            Ok(VarValue::Text(Arc::from(modes.to_string())))
        }
        Kind::TimeZone => match value {
            Value::Text(t) => match TimeZone::parse(t) {
                Some(_) => Ok(VarValue::Text(t.clone())),
                None => Err(error::unknown_time_zone(t)),
            },
            Value::Null => refuse(),
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::Locale => match value {
            Value::Text(t) => Ok(VarValue::Text(t.clone())),
            Value::Int(0) | Value::UInt(0) => Ok(VarValue::Text(Arc::from("en_US"))),
            Value::Int(_) | Value::UInt(_) => Err(error::err(1649, format!("Unknown locale: '{}'", shown()))),
            Value::Null => refuse(),
            _ => Err(error::wrong_type_for_var(name)),
        },
        Kind::Engine => match value {
            Value::Text(t) if is_our_engine(t) || is_engine_of_mysql(t) => Ok(VarValue::Text(Arc::from("InnoDB"))),
            Value::Text(t) => Err(error::unknown_engine(t)),
            Value::Null => refuse(),
            _ => Err(error::wrong_type_for_var(name)),
        },
    }
}

/// Error 3721 for what utf8mb4 alone cannot mean.
fn allowed_collation(name: &str, collation: &Collation) -> Result<VarValue, MySqlError> {
    if name == "default_collation_for_utf8mb4" && !matches!(collation.name, "utf8mb4_0900_ai_ci" | "utf8mb4_general_ci") {
        return Err(highkey_types::errors::invalid_default_utf8mb4_collation(collation.name));
    }
    Ok(VarValue::Text(Arc::from(collation.name)))
}

/// The engine here, which is named as programs expect it.
pub fn is_our_engine(name: &str) -> bool {
    ["InnoDB", "Highkey"].iter().any(|ours| name.eq_ignore_ascii_case(ours))
}

/// An engine that every MySQL has: its tables are ours here, whatever sql_mode says.
pub fn is_engine_of_mysql(name: &str) -> bool {
    ["MyISAM", "MEMORY", "HEAP", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MYISAM", "MERGE"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::UInt(n) => Some(*n),
        _ => None,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(f) => f.to_string(),
        Value::Double(d) => d.to_string(),
        Value::Decimal(d) => d.to_string(),
        Value::Text(t) => t.to_string(),
        other => format!("{other:?}"),
    }
}

/// Character sets that are those of collations.
const COUPLED: [(&str, &str); 3] =
    [("character_set_connection", "collation_connection"), ("character_set_server", "collation_server"), ("character_set_database", "collation_database")];

/// The variable of the collation whose character set this one is.
pub fn collation_behind(id: VarId) -> Option<VarId> {
    COUPLED.iter().find(|(charset, _)| *charset == id.definition().name).map(|(_, collation)| BY_NAME[*collation])
}

/// Variables that move together: a character set takes its default collation along, a collation its character set.
pub fn couple(id: VarId, value: &VarValue, values: &mut Values) {
    let VarValue::Text(text) = value else { return };
    let name = id.definition().name;
    for (charset, collation) in COUPLED {
        if name == charset
            && let Some(c) = Charset::by_name(text)
        {
            values.set(BY_NAME[collation], VarValue::Text(Arc::from(Collation::default_of(c).name)));
        } else if name == collation
            && let Some(c) = Collation::by_name(text)
        {
            values.set(BY_NAME[charset], VarValue::Text(Arc::from(c.charset.name())));
        }
    }
}

/// The compiled-in value, with what only the running machine knows filled in.
fn default_value(definition: &Definition) -> VarValue {
    let text = match definition.default {
        "$null" => return VarValue::Null,
        "$version" => crate::session::VERSION.to_owned(),
        "$hostname" => std::fs::read_to_string("/proc/sys/kernel/hostname").map(|h| h.trim().to_owned()).unwrap_or_else(|_| "localhost".to_owned()),
        "$cores" => std::thread::available_parallelism().map(|n| n.get()).unwrap_or(1).to_string(),
        "$memory_eighth" => (memory_bytes() / 8).next_multiple_of(1 << 20).to_string(),
        "$memory_quarter" => (memory_bytes() / 4).max(5_242_880).next_multiple_of(1 << 20).to_string(),
        "$machine" => std::env::consts::ARCH.to_owned(),
        "$os" => std::env::consts::OS.to_owned(),
        "$uuid" => random_uuid(),
        "$time_zone" => system_time_zone(),
        other => other.to_owned(),
    };
    match definition.kind {
        Kind::Bool => VarValue::Bool(text == "ON"),
        Kind::UInt(..) => VarValue::UInt(text.parse().expect("the table's defaults are numbers")),
        Kind::Double(..) => VarValue::Double(text.parse().expect("the table's defaults are numbers")),
        _ => VarValue::Text(Arc::from(text)),
    }
}

/// The machine's memory, or the control group's limit if that is less.
fn memory_bytes() -> u64 {
    let total = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.lines().find_map(|l| l.strip_prefix("MemTotal:").map(|v| v.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()))?)
        .map_or(512 << 20, |kib| kib * 1024);
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|t| t.trim().parse::<u64>().ok());
    limit.map_or(total, |l| l.min(total))
}

/// `TZ`, or what /etc/localtime points at.
fn system_time_zone() -> String {
    if let Ok(name) = std::env::var("TZ")
        && !name.is_empty()
    {
        return name.trim_start_matches(':').to_owned();
    }
    let link = std::fs::read_link("/etc/localtime").unwrap_or_default();
    link.to_string_lossy().split_once("zoneinfo/").map_or("UTC", |(_, name)| name.trim_start_matches("Etc/")).to_owned()
}

fn random_uuid() -> String {
    let mut b: [u8; 16] = rand::random();
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    let hex: String = b.iter().map(|x| format!("{x:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_defaults_fit() {
        let names: Vec<_> = table::DEFINITIONS.iter().map(|d| d.name).collect();
        assert!(names.is_sorted(), "{:?}", names.windows(2).find(|w| w[0] > w[1]));
        let values = Values::default();
        for id in all() {
            let input = match values.get(id) {
                VarValue::Bool(b) => Value::Int(i64::from(*b)),
                v => to_value(v),
            };
            let mut warnings = Vec::new();
            assert_eq!(&convert(id, &input, &mut warnings).unwrap(), values.get(id), "{}", id.definition().name);
            assert!(warnings.is_empty(), "{}", id.definition().name);
        }
    }

    #[test]
    fn hints_set_what_sessions_may_set() {
        for name in table::HINTABLE {
            let definition = find(name).unwrap_or_else(|| panic!("{name}")).definition();
            assert!(definition.dynamic && definition.scope != Scope::Global, "{name}");
        }
        assert!(is_hintable(find("SQL_MODE").unwrap()) && !is_hintable(find("autocommit").unwrap()));
    }

    #[test]
    fn values_out_of_range_are_cut_and_reported() {
        let id = find("Max_Connections").unwrap();
        let mut warnings = Vec::new();
        assert_eq!(convert(id, &Value::Int(0), &mut warnings).unwrap(), VarValue::UInt(1));
        assert_eq!(warnings[0].code, 1292);
        assert_eq!(convert(id, &Value::Text("x".into()), &mut warnings).unwrap_err().code, 1232);
        let id = find("autocommit").unwrap();
        assert_eq!(convert(id, &Value::Int(2), &mut warnings).unwrap_err().code, 1231);
        assert_eq!(convert(id, &Value::Text("off".into()), &mut warnings).unwrap(), VarValue::Bool(false));
        let id = find("tx_isolation").unwrap();
        assert_eq!(convert(id, &Value::Text("read-committed".into()), &mut warnings).unwrap(), VarValue::Text("READ-COMMITTED".into()));
    }

    #[test]
    fn combination_modes_expand() {
        assert!(SqlModes::parse("TRADITIONAL").unwrap().to_string().starts_with("STRICT_TRANS_TABLES,STRICT_ALL_TABLES"));
        assert!(SqlModes::parse("ansi").unwrap().has(SqlModes::ANSI_QUOTES));
        assert_eq!(SqlModes::parse("").unwrap().to_string(), "");
        assert_eq!(SqlModes::parse("nonsense").unwrap_err().code, 1231);
    }
}
