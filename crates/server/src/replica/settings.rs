//! What CHANGE REPLICATION SOURCE and CHANGE REPLICATION FILTER set, kept in the catalog.

use highkey_sql::replica::{SourceOptions, SourceValue};
use highkey_types::{Level, MySqlError, Warning};
use serde::{Deserialize, Serialize};

use super::filter::Filters;
use super::gtid::Gtids;
use super::position::{FIRST_OFFSET, Position};

/// A source and how it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub bind: String,
    /// Seconds between two attempts to connect.
    pub connect_retry: u64,
    /// Attempts before the receiver gives up; 0: it does not.
    pub retry_count: u64,
    /// Seconds between heartbeats, 0 for none; None: half of `slave_net_timeout`.
    pub heartbeat_period: Option<f64>,
    /// Ask by GTID, not by file: MySQL's SOURCE_AUTO_POSITION, MariaDB's MASTER_USE_GTID.
    pub auto_position: bool,
    /// Seconds that a transaction is applied after the source ran it.
    pub delay: u64,
    pub ignore_server_ids: Vec<u64>,
    pub ssl: bool,
    pub ssl_ca: String,
    /// A directory of certificates, named by `openssl rehash`.
    pub ssl_capath: String,
    pub ssl_cert: String,
    pub ssl_key: String,
    /// Ciphers of TLS 1.2 in OpenSSL's words; empty: all.
    pub ssl_cipher: String,
    pub ssl_crl: String,
    pub ssl_crlpath: String,
    pub ssl_verify: bool,
    /// Versions with commas; empty: all.
    pub tls_version: String,
    /// Ciphers of TLS 1.3; `None`: all.
    pub tls_ciphersuites: Option<String>,
    /// A file with the source's key in PEM, under which the password goes without TLS.
    pub public_key_path: String,
    /// The source's key is believed as the source sends it.
    pub get_public_key: bool,
    pub filters: Filters,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            host: String::new(),
            port: 3306,
            user: String::new(),
            password: String::new(),
            bind: String::new(),
            connect_retry: 60,
            retry_count: 86_400,
            heartbeat_period: None,
            auto_position: false,
            delay: 0,
            ignore_server_ids: Vec::new(),
            ssl: false,
            ssl_ca: String::new(),
            ssl_capath: String::new(),
            ssl_cert: String::new(),
            ssl_key: String::new(),
            ssl_cipher: String::new(),
            ssl_crl: String::new(),
            ssl_crlpath: String::new(),
            ssl_verify: false,
            tls_version: String::new(),
            tls_ciphersuites: None,
            public_key_path: String::new(),
            get_public_key: false,
            filters: Filters::default(),
        }
    }
}

/// Any of MySQL's errors by number.
pub fn fail(code: u16, message: impl Into<String>) -> MySqlError {
    MySqlError::with_message(code, message)
}

fn note(code: u16, message: &str) -> Warning {
    Warning { level: Level::Note, code, message: message.into() }
}

/// Options that are taken and change nothing: there is no relay log, and no part of a row is checked by privilege.
const WITHOUT_EFFECT: &[&str] = &[
    "RELAY_LOG_FILE",
    "RELAY_LOG_POS",
    "PRIVILEGE_CHECKS_USER",
    "REQUIRE_ROW_FORMAT",
    "REQUIRE_TABLE_PRIMARY_KEY_CHECK",
    "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS",
    "SOURCE_CONNECTION_AUTO_FAILOVER",
    "SOURCE_COMPRESSION_ALGORITHMS",
    "SOURCE_ZSTD_COMPRESSION_LEVEL",
    "NETWORK_NAMESPACE",
    "GTID_ONLY",
    "SOURCE_DEMOTE_TO_REPLICA",
];

impl Settings {
    /// Applies CHANGE REPLICATION SOURCE to the settings and to the position. Nothing has changed if it fails: 1210 for a value that does not fit, 1776 for
    /// a file beside auto position.
    pub fn change(&self, position: &Position, options: &SourceOptions) -> Result<(Settings, Position, Vec<Warning>), MySqlError> {
        let mut next = self.clone();
        let (mut file, mut offset, mut gtids, mut warnings) = (None, None, None, Vec::new());
        for (name, value) in options {
            let wrong = || fail(1210, format!("Incorrect arguments to {name}"));
            let text = || value.text().map(str::to_string).ok_or_else(wrong);
            let number = || value.number().ok_or_else(wrong);
            let switch = || number().map(|n| n != 0);
            match name.as_str() {
                "SOURCE_HOST" => next.host = text()?,
                "SOURCE_PORT" => next.port = u16::try_from(number()?).map_err(|_| wrong())?,
                "SOURCE_USER" => next.user = text()?,
                "SOURCE_PASSWORD" => next.password = text()?,
                "SOURCE_BIND" => next.bind = text()?,
                "SOURCE_CONNECT_RETRY" => next.connect_retry = number()?,
                "SOURCE_RETRY_COUNT" => next.retry_count = number()?,
                "SOURCE_HEARTBEAT_PERIOD" => {
                    let seconds: f64 = text()?.parse().map_err(|_| wrong())?;
                    if !(0.0..=4_294_967.0).contains(&seconds) {
                        return Err(fail(1623, "The requested value for the heartbeat period is either negative or exceeds the maximum allowed (4294967 seconds)."));
                    }
                    next.heartbeat_period = Some(seconds);
                }
                "SOURCE_AUTO_POSITION" => next.auto_position = switch()?,
                // MariaDB's: slave_pos, current_pos, replica_pos, no.
                "SOURCE_USE_GTID" => next.auto_position = !text()?.eq_ignore_ascii_case("no"),
                // Ours: the transactions that the data has which the replica starts with, in the source's text. MySQL takes them from gtid_purged.
                "GTID_EXECUTED" => gtids = Some(value.text().and_then(Gtids::parse).ok_or_else(|| fail(1772, format!("Malformed GTID set specification '{}'.", text().unwrap_or_default())))?),
                "SOURCE_LOG_FILE" => file = Some(text()?),
                "SOURCE_LOG_POS" => offset = Some(number()?),
                "SOURCE_DELAY" => next.delay = number()?,
                "IGNORE_SERVER_IDS" => match value {
                    SourceValue::List(ids) => next.ignore_server_ids.clone_from(ids),
                    _ => return Err(wrong()),
                },
                "SOURCE_SSL" => next.ssl = switch()?,
                "SOURCE_SSL_CA" => next.ssl_ca = text()?,
                "SOURCE_SSL_CAPATH" => next.ssl_capath = text()?,
                "SOURCE_SSL_CERT" => next.ssl_cert = text()?,
                "SOURCE_SSL_KEY" => next.ssl_key = text()?,
                "SOURCE_SSL_CIPHER" => next.ssl_cipher = text()?,
                "SOURCE_SSL_CRL" => next.ssl_crl = text()?,
                "SOURCE_SSL_CRLPATH" => next.ssl_crlpath = text()?,
                "SOURCE_SSL_VERIFY_SERVER_CERT" => next.ssl_verify = switch()?,
                "SOURCE_TLS_VERSION" => next.tls_version = text()?,
                "SOURCE_TLS_CIPHERSUITES" => {
                    let all = matches!(value, SourceValue::Word(word) if word.eq_ignore_ascii_case("NULL"));
                    next.tls_ciphersuites = if all { None } else { Some(text()?) };
                }
                "SOURCE_PUBLIC_KEY_PATH" => next.public_key_path = text()?,
                "GET_SOURCE_PUBLIC_KEY" => next.get_public_key = switch()?,
                other if WITHOUT_EFFECT.contains(&other) => warnings.push(note(1105, &format!("{other} has no effect in Highkey"))),
                other => return Err(fail(1064, format!("{other} is no option of CHANGE REPLICATION SOURCE"))),
            }
        }
        let of_files = file.is_some() || offset.is_some();
        if of_files && next.auto_position {
            if self.auto_position || options.iter().any(|(name, _)| name == "SOURCE_AUTO_POSITION" || name == "SOURCE_USE_GTID") {
                return Err(fail(1776, "Parameters MASTER_LOG_FILE, MASTER_LOG_POS, RELAY_LOG_FILE and RELAY_LOG_POS cannot be set when MASTER_AUTO_POSITION is active."));
            }
            next.auto_position = false;
        }
        let mut moved = position.clone();
        if of_files {
            moved.file = file.unwrap_or(moved.file);
            moved.offset = offset.unwrap_or(FIRST_OFFSET).max(FIRST_OFFSET);
        } else if (&next.host, next.port) != (&self.host, self.port) {
            // Another server: its files are others. The transactions stay done.
            moved = Position { gtids: moved.gtids, number: moved.number, ..Position::start() };
        }
        moved.gtids = gtids.unwrap_or(moved.gtids);
        moved.number += u64::from(moved != *position);
        if !next.password.is_empty() && options.iter().any(|(name, _)| name == "SOURCE_PASSWORD") {
            if !next.ssl {
                warnings.push(note(1759, "Sending passwords in plain text without SSL/TLS is extremely insecure."));
            }
            warnings.push(note(
                1760,
                "Storing MySQL user name or password information in the master info repository is not secure and is therefore not recommended. Please consider using the USER and PASSWORD connection options for START SLAVE; see the 'START SLAVE Syntax' in the MySQL Manual for more information.",
            ));
        }
        Ok((next, moved, warnings))
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("settings have string keys only")
    }

    pub fn decode(bytes: &[u8]) -> Result<Settings, String> {
        serde_json::from_slice(bytes).map_err(|e| format!("a replica's settings do not decode: {e}"))
    }
}

/// Where START REPLICA UNTIL ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Until {
    #[default]
    Never,
    /// After the transaction that reaches this offset of the source's file.
    Offset { file: String, offset: u64 },
    /// Before the first transaction of the set.
    BeforeGtids(Gtids),
    /// When all transactions of the set are done.
    AfterGtids(Gtids),
}

impl Until {
    /// Error 1277 for conditions that do not go together.
    pub fn parse(options: &SourceOptions) -> Result<Until, MySqlError> {
        let wrong = || fail(1277, "Incorrect parameter or combination of parameters for START SLAVE UNTIL");
        let get = |name: &str| options.iter().find(|(n, _)| n == name).map(|(_, value)| value);
        let set = |value: &SourceValue| value.text().and_then(Gtids::parse).ok_or_else(|| fail(1772, format!("Malformed GTID set specification '{}'.", value.text().unwrap_or_default())));
        match options.len() {
            0 => Ok(Until::Never),
            2 => match (get("SOURCE_LOG_FILE").and_then(SourceValue::text), get("SOURCE_LOG_POS").and_then(SourceValue::number)) {
                (Some(file), Some(offset)) => Ok(Until::Offset { file: file.into(), offset }),
                _ => Err(wrong()),
            },
            1 => match &options[0] {
                (name, value) if name == "SQL_BEFORE_GTIDS" => Ok(Until::BeforeGtids(set(value)?)),
                (name, value) if name == "SQL_AFTER_GTIDS" => Ok(Until::AfterGtids(set(value)?)),
                // Commits are in order: there are no gaps.
                (name, _) if name == "SQL_AFTER_MTS_GAPS" => Ok(Until::AfterGtids(Gtids::default())),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    /// Whether the applier ends at `position`, before the transaction `next`. `executed`: what has been executed here, by whomever. The source does not
    /// send it, so it never comes to be in the position.
    pub fn reached(&self, position: &Position, next: Option<&super::gtid::Gtid>, executed: impl FnOnce() -> Option<Gtids>) -> bool {
        match self {
            Until::Never => false,
            Until::Offset { file, offset } => (&position.file, position.offset) >= (file, *offset),
            Until::BeforeGtids(set) => next.is_some_and(|gtid| set.contains(gtid)),
            Until::AfterGtids(set) => {
                position.gtids.contains_all(set)
                    || executed().is_some_and(|mut have| {
                        have.union(&position.gtids);
                        have.contains_all(set)
                    })
            }
        }
    }

    /// Until_Condition, Until_Log_File and Until_Log_Pos.
    pub fn shown(&self) -> (&'static str, String, u64) {
        match self {
            Until::Never => ("None", String::new(), 0),
            Until::Offset { file, offset } => ("Master", file.clone(), *offset),
            Until::BeforeGtids(_) => ("SQL_BEFORE_GTIDS", String::new(), 0),
            Until::AfterGtids(_) => ("SQL_AFTER_GTIDS", String::new(), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(list: &[(&str, &str)]) -> SourceOptions {
        let value = |text: &str| if text.parse::<f64>().is_ok() { SourceValue::Number(text.into()) } else { SourceValue::Text(text.into()) };
        list.iter().map(|(name, text)| (name.to_string(), value(text))).collect()
    }

    #[test]
    fn a_position_is_of_one_source() {
        let at = Position { file: "b.000007".into(), offset: 900, gtids: Gtids::parse("0-1-5").unwrap(), number: 7 };
        let first = Settings::default();
        let (next, position, notes) = first.change(&at, &options(&[("SOURCE_HOST", "a"), ("SOURCE_PASSWORD", "p")])).unwrap();
        assert_eq!((position.file.as_str(), position.offset, &position.gtids, position.number), ("", 4, &at.gtids, 8));
        assert_eq!(notes.iter().map(|n| n.code).collect::<Vec<_>>(), [1759, 1760]);
        // The same source, other settings.
        let (_, position, _) = next.change(&at, &options(&[("SOURCE_CONNECT_RETRY", "5"), ("SOURCE_HOST", "a")])).unwrap();
        assert_eq!(position, at);
        let (_, position, _) = next.change(&at, &options(&[("SOURCE_LOG_FILE", "b.000001")])).unwrap();
        assert_eq!((position.file.as_str(), position.offset), ("b.000001", 4));
        let (_, position, _) = next.change(&at, &options(&[("GTID_EXECUTED", "0-1-9,2-1-3")])).unwrap();
        assert_eq!((position.gtids.to_string().as_str(), position.offset), ("0-1-9,2-1-3", 900));
        assert_eq!(next.change(&at, &options(&[("GTID_EXECUTED", "nothing")])).unwrap_err().code, 1772);
        let auto = next.change(&at, &options(&[("SOURCE_AUTO_POSITION", "1")])).unwrap().0;
        assert_eq!(auto.change(&at, &options(&[("SOURCE_LOG_POS", "4")])).unwrap_err().code, 1776);
        let back = auto.change(&at, &options(&[("SOURCE_AUTO_POSITION", "0"), ("SOURCE_LOG_POS", "200")])).unwrap();
        assert_eq!((back.0.auto_position, back.1.offset), (false, 200));
        assert_eq!(next.change(&at, &options(&[("SOURCE_PORT", "70000")])).unwrap_err().code, 1210);
        let ciphersuites = |value: SourceValue| next.change(&at, &vec![("SOURCE_TLS_CIPHERSUITES".to_string(), value)]).unwrap().0.tls_ciphersuites;
        assert_eq!(ciphersuites(SourceValue::Text(String::new())), Some(String::new()));
        assert_eq!(ciphersuites(SourceValue::Word("NULL".into())), None);
        assert_eq!(Settings::decode(&auto.encode()), Ok(auto));
        assert_eq!(Position::decode(&at.encode()), Ok(at));
    }

    #[test]
    fn until_is_one_condition() {
        let at = |file: &str, offset, gtids: &str| Position { file: file.into(), offset, gtids: Gtids::parse(gtids).unwrap(), number: 0 };
        let until = Until::parse(&options(&[("SOURCE_LOG_FILE", "b.2"), ("SOURCE_LOG_POS", "100")])).unwrap();
        assert!(!until.reached(&at("b.1", 500, ""), None, || None) && !until.reached(&at("b.2", 99, ""), None, || None) && until.reached(&at("b.2", 100, ""), None, || None));
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let until = Until::parse(&options(&[("SQL_AFTER_GTIDS", &format!("{uuid}:2-3"))])).unwrap();
        assert!(!until.reached(&at("", 4, &format!("{uuid}:1-2")), None, || None) && until.reached(&at("", 4, &format!("{uuid}:1-5")), None, || None));
        // A part has been executed by somebody else, or all.
        let executed = |numbers: &str| Gtids::parse(&format!("{uuid}:{numbers}"));
        assert!(until.reached(&at("", 4, &format!("{uuid}:1-2")), None, || executed("3")) && until.reached(&at("", 4, ""), None, || executed("1-3")));
        assert!(!until.reached(&at("", 4, &format!("{uuid}:1-2")), None, || executed("4")));
        for wrong in [&[("SOURCE_LOG_FILE", "b.2")][..], &[("SQL_AFTER_GTIDS", "x"), ("SQL_BEFORE_GTIDS", "x")], &[("SOURCE_HOST", "x"), ("SOURCE_LOG_POS", "4")]] {
            assert_eq!(Until::parse(&options(wrong)).unwrap_err().code, 1277, "{wrong:?}");
        }
    }
}
