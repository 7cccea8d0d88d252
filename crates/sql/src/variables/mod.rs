//! System variables: one table, their values, and what the command line makes of them.

/// The values of all variables, by position in the table.
#[derive(Clone, Debug)]
pub struct Values {}

impl Values {
    pub fn u64(&self, _name: &str) -> u64 {
        unimplemented!()
    }
    pub fn text(&self, _name: &str) -> String {
        unimplemented!()
    }
}

/// An option that cannot be: unknown, ambiguous, or with a value that does not fit. Displays as mysqld words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(pub String);

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

/// Global values before the server runs: defaults, then the configuration file, then the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    values: Values,
}

impl Default for Settings {
    fn default() -> Self {
        unimplemented!()
    }
}

impl Settings {
    /// `name` with dashes or underscores, prefixes `loose-`, `skip-`, `enable-`, `disable-` as mysqld takes them; values with K, M, G, T.
    /// `None` is an option without `=value` (a switch turned on).
    pub fn set(&mut self, _name: &str, _value: Option<&str>) -> Result<(), SettingError> {
        unimplemented!()
    }

    /// Applies a `my.cnf`: the groups [mysqld], [server] and [highkey]; `!include` and `!includedir` are refused.
    pub fn apply_config(&mut self, _text: &str, _file: &str) -> Result<(), SettingError> {
        unimplemented!()
    }

    /// Warnings about options that are accepted and have no effect here.
    pub fn warnings(&self) -> &[String] {
        unimplemented!()
    }

    pub fn u64(&self, name: &str) -> u64 {
        self.values.u64(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.values.text(name)
    }

    /// What the database is opened with.
    pub fn database_options(&self) -> highkey_table::Options {
        unimplemented!()
    }

    pub fn values(&self) -> &Values {
        &self.values
    }
}
