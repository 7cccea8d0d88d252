//! SHOW CREATE TABLE, DATABASE and USER: the text that would make the thing again.

use highkey_table::{ColumnDef, Default, IndexKind, PartitionDef, PartitionMethod, PartitionValues, Partitioning, SchemaDef, Table, TableDef, UserDef, WordParser};
use highkey_types::{Collation, GeometryType, Str, TypeKind, Value, string_literal};

use super::facts::hidden_key;
use crate::information_schema;
use crate::parse::is_reserved;
use crate::parse::print::quote;
use crate::privileges::quoted_roles;
use crate::session::SessionState;

/// The statement that would make `table`, for SHOW CREATE TABLE.
pub fn table(state: &SessionState, table: &Table) -> String {
    let quoting = state.variables.bool("sql_quote_show_create");
    let ansi = state.config.parse.ansi_quotes;
    let name = |n: &str| match quoting {
        true if ansi => format!("\"{}\"", n.replace('"', "\"\"")),
        true => quote(n),
        false => n.to_owned(),
    };
    statement(table, &name(&table.def().name), &name, hidden_key(state, table.def()))
}

/// The statement that makes `table` on any server, whatever schema is the current one there.
pub fn definition(table: &Table) -> String {
    let def = table.def();
    statement(table, &format!("{}.{}", quote(&def.schema), quote(&def.name)), &quote, None)
}

/// Without the column `hidden`, which is the whole primary key.
fn statement(table: &Table, full_name: &str, name: &dyn Fn(&str) -> String, hidden: Option<usize>) -> String {
    let def = table.def();
    let shown = def.columns.iter().enumerate().filter(|(i, _)| Some(*i) != hidden);
    let mut lines: Vec<String> = shown.map(|(_, c)| format!("  {}", column(def, c, name))).collect();
    let keys = def.indexes.iter().filter(|i| i.kind != IndexKind::RowId && !(hidden.is_some() && i.kind == IndexKind::Primary));
    for index in keys {
        let parts: Vec<String> = index
            .parts
            .iter()
            .map(|p| {
                let prefix = p.prefix.map_or(String::new(), |n| format!("({n})"));
                format!("{}{prefix}{}", name(&def.columns[p.column].name), if p.descending { " DESC" } else { "" })
            })
            .collect();
        let mut line = match index.kind {
            IndexKind::Primary => "  PRIMARY KEY".to_owned(),
            IndexKind::Unique => format!("  UNIQUE KEY {}", name(&index.name)),
            IndexKind::FullText => format!("  FULLTEXT KEY {}", name(&index.name)),
            _ => format!("  KEY {}", name(&index.name)),
        };
        line += &format!(" ({})", parts.join(","));
        if !index.comment.is_empty() {
            line += &format!(" COMMENT {}", string_literal(&index.comment));
        }
        if index.invisible {
            line += " /*!80000 INVISIBLE */";
        }
        if matches!(index.words.parser, WordParser::Ngram { .. }) {
            line += &format!(" /*!50100 WITH PARSER {} */ ", name("ngram"));
        }
        lines.push(line);
    }
    for key in &def.foreign_keys {
        lines.push(format!("  {}", def.foreign_key_text(key, name)));
    }
    for check in &def.checks {
        let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
        lines.push(format!("  CONSTRAINT {} CHECK {}{enforced}", name(&check.name), parenthesised(&check.expr)));
    }
    let temporary = if table.is_temporary() { "TEMPORARY " } else { "" };
    let mut text = format!("CREATE {temporary}TABLE {full_name} (\n{}\n) ENGINE=InnoDB", lines.join(",\n"));
    if let Some(next) = table.next_auto_increment().filter(|next| *next > 1 && hidden.is_none()) {
        text += &format!(" AUTO_INCREMENT={next}");
    }
    text += &format!(" DEFAULT CHARSET={}", def.collation.charset.name());
    if !def.collation.is_default || def.collation.name == "utf8mb4_0900_ai_ci" {
        text += &format!(" COLLATE={}", def.collation.name);
    }
    if let Some(format) = &def.row_format {
        text += &format!(" ROW_FORMAT={format}");
    }
    if !def.comment.is_empty() {
        text += &format!(" COMMENT={}", string_literal(&def.comment));
    }
    if let Some(partitioning) = &def.partitioning {
        text += &format!("\n{}", partitions(partitioning));
    }
    text
}

/// PARTITION BY in the comment that hides it from older servers.
fn partitions(partitioning: &Partitioning) -> String {
    let plain = |columns: &[Str]| columns.iter().map(|name| if is_plain(name) { name.to_string() } else { quote(name) }).collect::<Vec<_>>().join(",");
    let mut version = "50100";
    let method = match &partitioning.method {
        PartitionMethod::Range(expr) => format!("RANGE ({})", expr.text()),
        PartitionMethod::List(expr) => format!("LIST ({})", expr.text()),
        PartitionMethod::RangeColumns(columns) | PartitionMethod::ListColumns(columns) => {
            version = "50500";
            let kind = if matches!(partitioning.method, PartitionMethod::RangeColumns(_)) { "RANGE" } else { "LIST" };
            format!("{kind}  COLUMNS({})", plain(columns))
        }
        PartitionMethod::Hash { expr, .. } => format!("{} ({})", partitioning.method_name(), expr.text()),
        PartitionMethod::Key { columns, algorithm: Some(algorithm), .. } => {
            format!("{} */ /*!50611 ALGORITHM = {algorithm} */ /*!50100 ({})", partitioning.method_name(), plain(columns))
        }
        PartitionMethod::Key { columns, .. } => format!("{} ({})", partitioning.method_name(), plain(columns)),
    };
    let mut text = format!("/*!{version} PARTITION BY {method}");
    if partitioning.numbered {
        if partitioning.partitions.len() > 1 {
            text += &format!("\nPARTITIONS {}", partitioning.partitions.len());
        }
        return text + " */";
    }
    let one = |partition: &PartitionDef| {
        let name = if is_plain(&partition.name) { partition.name.to_string() } else { quote(&partition.name) };
        let mut text = format!("PARTITION {name}");
        match (&partition.values, partition.values.description()) {
            (PartitionValues::Below(None), _) => text += " VALUES LESS THAN MAXVALUE",
            (PartitionValues::Below(_) | PartitionValues::BelowColumns(_), Some(limit)) => text += &format!(" VALUES LESS THAN ({limit})"),
            (_, Some(values)) => text += &format!(" VALUES IN ({values})"),
            (_, None) => {}
        }
        if !partition.comment.is_empty() {
            text += &format!(" COMMENT = {}", string_literal(&partition.comment));
        }
        text + " ENGINE = InnoDB"
    };
    let all: Vec<String> = partitioning.partitions.iter().map(one).collect();
    text + &format!("\n({}) */", all.join(",\n "))
}

/// A name that needs no quotes.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$')) && !name.chars().all(|c| c.is_ascii_digit()) && !is_reserved(name)
}

fn column(def: &TableDef, column: &ColumnDef, name: &dyn Fn(&str) -> String) -> String {
    let ty = &column.ty;
    let mut text = format!("{} {ty}", name(&column.name));
    if ty.is_text() || matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
        let named = column.explicit_collation || ty.collation != def.collation;
        if named {
            text += &format!(" CHARACTER SET {}", ty.charset().name());
        }
        // What utf8mb4 alone means is another server's or session's choice.
        if column.explicit_collation || !ty.collation.is_default || (named && ty.collation == Collation::utf8mb4()) {
            text += &format!(" COLLATE {}", ty.collation.name);
        }
    }
    if let Some(generated) = &column.generated {
        text += &format!(" GENERATED ALWAYS AS {} {}", parenthesised(&generated.expr), if generated.stored { "STORED" } else { "VIRTUAL" });
    }
    if !column.nullable {
        text += " NOT NULL";
    } else if matches!(ty.kind, TypeKind::Timestamp(_)) {
        text += " NULL";
    }
    if column.invisible {
        text += " /*!80023 INVISIBLE */";
    }
    if let TypeKind::Geometry(GeometryType { srid: Some(srid), .. }) = ty.kind {
        text += &format!(" /*!80003 SRID {srid} */");
    }
    match &column.default {
        _ if column.generated.is_some() => {}
        Default::None if !column.nullable => {}
        Default::Dropped => {}
        Default::None | Default::Literal(Value::Null) if column.ty.is_blob() && column.ty.kind != TypeKind::Json && !column.ty.is_geometry() => {}
        Default::None if column.auto_increment => {}
        Default::None | Default::Literal(Value::Null) => text += " DEFAULT NULL",
        Default::Literal(value) => {
            let shown = information_schema::column_default(column).unwrap_or_default();
            let binary = matches!(ty.kind, TypeKind::Binary(_) | TypeKind::VarBinary(_));
            text += " DEFAULT ";
            text += &match value {
                // Bytes that are no text stay as they are shown.
                Value::Bytes(bytes) if binary => std::str::from_utf8(bytes).map_or(shown, string_literal),
                _ if matches!(ty.kind, TypeKind::Bit(_)) => shown,
                _ => string_literal(&shown),
            };
        }
        Default::Expr(expr) => text += &format!(" DEFAULT {}", parenthesised(expr)),
        Default::CurrentTimestamp(_) => text += &format!(" DEFAULT {}", information_schema::column_default(column).unwrap_or_default()),
    }
    if column.on_update_now {
        text += &match ty.fsp() {
            0 => " ON UPDATE CURRENT_TIMESTAMP".to_owned(),
            n => format!(" ON UPDATE CURRENT_TIMESTAMP({n})"),
        };
    }
    if column.auto_increment {
        text += " AUTO_INCREMENT";
    }
    if !column.comment.is_empty() {
        text += &format!(" COMMENT {}", string_literal(&column.comment));
    }
    text
}

/// Expressions are kept without the parentheses that the syntax around them needs.
fn parenthesised(expr: &str) -> String {
    format!("({expr})")
}

/// The statement that would make a schema.
pub fn database(schema: &SchemaDef, if_not_exists: bool) -> String {
    let collation = schema.collation;
    let collate = if !collation.is_default || collation.name == "utf8mb4_0900_ai_ci" { format!(" COLLATE {}", collation.name) } else { String::new() };
    format!(
        "CREATE DATABASE {}{} /*!40100 DEFAULT CHARACTER SET {}{collate} */",
        if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" },
        quote(&schema.name),
        collation.charset.name()
    )
}

/// The statement that would make an account.
pub fn user(account: &UserDef) -> String {
    let hash = if account.authentication_string.is_empty() {
        String::new()
    } else {
        format!(" AS {}", string_literal(&account.authentication_string))
    };
    let roles = &account.grants.default_roles;
    let roles = if roles.is_empty() { String::new() } else { format!(" DEFAULT ROLE {}", quoted_roles(roles)) };
    format!(
        "CREATE USER {}@{} IDENTIFIED WITH '{}'{hash}{roles} REQUIRE NONE PASSWORD EXPIRE{} ACCOUNT {} PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT",
        string_literal(&account.user),
        string_literal(&account.host),
        account.plugin,
        if account.password_expired { "" } else { " DEFAULT" },
        if account.account_locked { "LOCK" } else { "UNLOCK" },
    )
}
