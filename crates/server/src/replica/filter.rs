//! Which of a source's changes are applied: MySQL's replication filters.

use std::collections::BTreeMap;

use highkey_sql::replica::ReplicaFilter;
use serde::{Deserialize, Serialize};

/// The rules of CHANGE REPLICATION FILTER and of the options `replicate_…`. Names compare with case, as names of tables do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filters {
    pub do_db: Vec<String>,
    pub ignore_db: Vec<String>,
    /// `schema.table`, here and below.
    pub do_table: Vec<String>,
    pub ignore_table: Vec<String>,
    /// With `%` and `_`, `\` before one that is meant.
    pub wild_do_table: Vec<String>,
    pub wild_ignore_table: Vec<String>,
    /// `from->to`.
    pub rewrite_db: Vec<String>,
    /// When each rule was set, be it to nothing.
    #[serde(default)]
    set_at: BTreeMap<String, SetAt>,
}

/// When a rule was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SetAt {
    /// Microseconds since 1970.
    micros: i64,
    by_option: bool,
}

const RULES: [&str; 7] = [
    "REPLICATE_DO_DB",
    "REPLICATE_IGNORE_DB",
    "REPLICATE_DO_TABLE",
    "REPLICATE_IGNORE_TABLE",
    "REPLICATE_WILD_DO_TABLE",
    "REPLICATE_WILD_IGNORE_TABLE",
    "REPLICATE_REWRITE_DB",
];

impl Filters {
    /// The list of a rule by its name in CHANGE REPLICATION FILTER.
    fn list_mut(&mut self, rule: &str) -> Option<&mut Vec<String>> {
        Some(match rule {
            "REPLICATE_DO_DB" => &mut self.do_db,
            "REPLICATE_IGNORE_DB" => &mut self.ignore_db,
            "REPLICATE_DO_TABLE" => &mut self.do_table,
            "REPLICATE_IGNORE_TABLE" => &mut self.ignore_table,
            "REPLICATE_WILD_DO_TABLE" => &mut self.wild_do_table,
            "REPLICATE_WILD_IGNORE_TABLE" => &mut self.wild_ignore_table,
            "REPLICATE_REWRITE_DB" => &mut self.rewrite_db,
            _ => return None,
        })
    }

    /// A statement sets a rule. False: there is none of that name.
    pub fn set(&mut self, rule: &str, items: &[String], now_micros: i64) -> bool {
        let Some(list) = self.list_mut(rule) else { return false };
        *list = items.to_vec();
        self.set_at.insert(rule.to_string(), SetAt { micros: now_micros, by_option: false });
        true
    }

    /// The rules that have been set, in the order of `shown`.
    pub fn rules(&self) -> Vec<ReplicaFilter> {
        let rules = RULES.into_iter().zip(self.shown()).filter(|(name, rule)| !rule.is_empty() || self.set_at.contains_key(*name));
        let told = |(name, rule): (&'static str, String)| {
            let set = self.set_at.get(name).copied().unwrap_or_default();
            ReplicaFilter { name, rule, by_option: set.by_option, since_micros: set.micros }
        };
        rules.map(told).collect()
    }

    /// As SHOW REPLICA STATUS shows them, in its order.
    pub fn shown(&self) -> [String; 7] {
        let rewrites: Vec<String> = self.rewrite_db.iter().map(|pair| format!("({})", pair.replacen("->", ",", 1))).collect();
        [
            self.do_db.join(","),
            self.ignore_db.join(","),
            self.do_table.join(","),
            self.ignore_table.join(","),
            self.wild_do_table.join(","),
            self.wild_ignore_table.join(","),
            rewrites.join(","),
        ]
    }

    /// What a schema is called here.
    pub fn rewritten<'a>(&'a self, schema: &'a str) -> &'a str {
        self.rewrite_db.iter().filter_map(|pair| pair.split_once("->")).find(|(from, _)| *from == schema).map_or(schema, |(_, to)| to)
    }

    /// Whether changes in a schema (by its name here) are applied, as far as the rules of databases say: DO before IGNORE. A statement without a default
    /// schema is of none.
    pub fn admits_schema(&self, schema: &str) -> bool {
        if !self.do_db.is_empty() { self.do_db.iter().any(|name| name == schema) } else { !self.ignore_db.iter().any(|name| name == schema) }
    }

    /// Whether there is any rule by which a change is left out.
    pub fn leaves_out(&self) -> bool {
        self.names_tables() || !self.do_db.is_empty() || !self.ignore_db.is_empty()
    }

    /// Whether there is a rule of tables.
    pub fn names_tables(&self) -> bool {
        [&self.do_table, &self.ignore_table, &self.wild_do_table, &self.wild_ignore_table].iter().any(|rules| !rules.is_empty())
    }

    /// The rules given as options of the server, `(name of the rule, items separated by commas)`: each takes the place of what was set before.
    pub fn apply_options(&mut self, now_micros: i64, option: impl Fn(&str) -> String) {
        for rule in RULES {
            let items = option(&rule.to_ascii_lowercase());
            if let Some(list) = self.list_mut(rule).filter(|_| !items.is_empty()) {
                *list = items.split(',').map(|item| item.trim().to_string()).filter(|item| !item.is_empty()).collect();
                self.set_at.insert(rule.to_string(), SetAt { micros: now_micros, by_option: true });
            }
        }
    }

    /// Whether changes of a table are applied, as far as the rules of tables say: DO, IGNORE, WILD_DO, WILD_IGNORE; what no rule names is applied unless
    /// there is a rule that says what is.
    pub fn admits_table(&self, schema: &str, table: &str) -> bool {
        self.admits_tables([(schema, table)])
    }

    /// Whether a statement about these tables is applied. As in MySQL the first that a rule names decides.
    pub fn admits_tables<'t>(&self, tables: impl IntoIterator<Item = (&'t str, &'t str)>) -> bool {
        let ruled = tables.into_iter().find_map(|(schema, table)| self.rule(&format!("{schema}.{table}")));
        ruled.unwrap_or(self.do_table.is_empty() && self.wild_do_table.is_empty())
    }

    /// What the first rule says that names a table.
    fn rule(&self, name: &str) -> Option<bool> {
        let is = |rules: &[String]| rules.iter().any(|rule| rule == name);
        let is_like = |rules: &[String]| rules.iter().any(|pattern| like(name.as_bytes(), pattern.as_bytes()));
        if is(&self.do_table) {
            Some(true)
        } else if is(&self.ignore_table) {
            Some(false)
        } else if is_like(&self.wild_do_table) {
            Some(true)
        } else if is_like(&self.wild_ignore_table) {
            Some(false)
        } else {
            None
        }
    }
}

/// LIKE over bytes: what MySQL 8.0.12 compares with where names of tables have case (`lower_case_table_names=0`), so that `_` is a byte.
fn like(text: &[u8], pattern: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'%', rest @ ..] => (0..=text.len()).any(|from| like(&text[from..], rest)),
        [b'\\', literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
        [b'_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        [literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(rules: &[(&str, &[&str])]) -> Filters {
        let mut filters = Filters::default();
        for (rule, items) in rules {
            *filters.list_mut(rule).unwrap() = items.iter().map(|item| item.to_string()).collect();
        }
        filters
    }

    #[test]
    fn rules_of_databases() {
        let none = Filters::default();
        assert!(none.admits_schema("a") && none.admits_schema("") && none.admits_table("a", "t"));
        let only = filters(&[("REPLICATE_DO_DB", &["a", "b"]), ("REPLICATE_IGNORE_DB", &["b"])]);
        assert!(only.admits_schema("b") && !only.admits_schema("c") && !only.admits_schema(""));
        let not = filters(&[("REPLICATE_IGNORE_DB", &["b"])]);
        assert!(not.admits_schema("a") && !not.admits_schema("b"));
        let renamed = filters(&[("REPLICATE_REWRITE_DB", &["a->z"])]);
        assert_eq!((renamed.rewritten("a"), renamed.rewritten("b")), ("z", "b"));
        assert_eq!(renamed.shown()[6], "(a,z)");
    }

    #[test]
    fn options_take_the_place_of_what_was_set() {
        let mut rules = filters(&[("REPLICATE_DO_DB", &["a"]), ("REPLICATE_IGNORE_DB", &["b"])]);
        assert!(!rules.names_tables());
        rules.apply_options(7, |name| match name {
            "replicate_do_db" => "x, y".into(),
            "replicate_wild_ignore_table" => "x.%".into(),
            _ => String::new(),
        });
        assert_eq!((rules.do_db.join(" ").as_str(), rules.ignore_db.join(" ").as_str(), rules.names_tables()), ("x y", "b", true));
        assert!(rules.set("REPLICATE_REWRITE_DB", &["p->q".into(), "r->s".into()], 8) && rules.set("REPLICATE_DO_TABLE", &[], 9) && !rules.set("REPLICATE_ALL", &[], 9));
        let told: Vec<String> = rules.rules().iter().map(|rule| format!("{} {} {} {}", rule.name, rule.rule, rule.by_option, rule.since_micros)).collect();
        let expected = [
            "REPLICATE_DO_DB x,y true 7",
            // From before it was noted when.
            "REPLICATE_IGNORE_DB b false 0",
            "REPLICATE_DO_TABLE  false 9",
            "REPLICATE_WILD_IGNORE_TABLE x.% true 7",
            "REPLICATE_REWRITE_DB (p,q),(r,s) false 8",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn rules_of_tables_in_mysqls_order() {
        let all = filters(&[
            ("REPLICATE_DO_TABLE", &["a.t"]),
            ("REPLICATE_IGNORE_TABLE", &["a.u"]),
            ("REPLICATE_WILD_DO_TABLE", &["a.%", "b.x\\_%"]),
            ("REPLICATE_WILD_IGNORE_TABLE", &["a.t", "c.%"]),
        ]);
        for (schema, table, admitted) in [("a", "t", true), ("a", "u", false), ("a", "other", true), ("b", "x_1", true), ("b", "xy1", false), ("c", "t", false), ("d", "t", false)] {
            assert_eq!(all.admits_table(schema, table), admitted, "{schema}.{table}");
        }
        let not = filters(&[("REPLICATE_WILD_IGNORE_TABLE", &["c.t__"])]);
        assert!(not.admits_table("c", "t1") && !not.admits_table("c", "t12") && not.admits_table("d", "t12"));
        // As MySQL 8.0.12 has it.
        let bytes = filters(&[("REPLICATE_WILD_IGNORE_TABLE", &["k.wü%", "k.q__z"]), ("REPLICATE_IGNORE_TABLE", &["k.ign"])]);
        for (table, admitted) in [("WÜ1", true), ("wü3", false), ("wu2", true), ("qéüz", true), ("qabz", false), ("IGN", true), ("ign", false)] {
            assert_eq!(bytes.admits_table("k", table), admitted, "{table}");
        }
        // Of several tables the first that is named by a rule decides.
        assert!(!bytes.admits_tables([("k", "ign"), ("k", "other")]) && !bytes.admits_tables([("k", "other"), ("k", "ign")]));
        assert!(!all.admits_tables([("d", "t"), ("a", "u"), ("a", "t")]) && all.admits_tables([("d", "t"), ("a", "t"), ("a", "u")]));
    }
}
