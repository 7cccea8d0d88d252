//! From CREATE TABLE as written to what the catalog is asked for: columns, keys, checks, and all that MySQL refuses about them.

use std::sync::Arc;

use highkey_table::{CheckDef, ColumnDef, Default, ForeignKeyDef, Generated, IndexKind, IndexPart, IndexSpec, ReferenceAction, TableSpec, WordRules};
use highkey_types::{Collation, ColumnType, DateTime, MySqlError, Str, TypeKind, Value, errors};

use super::collation::collation_of;
use crate::bind;
use crate::parse::ast;
use crate::session::Config;
use crate::session::error::{self, err};
use crate::variables::SqlModes;

/// What checking a definition needs of the session: evaluating literals, checking expressions.
pub trait DefinitionChecks {
    /// A literal converted to the column's type, or 1067.
    fn default_literal(&mut self, expr: &ast::Expr, column: &ColumnDef) -> Result<Value, MySqlError>;
    /// Binds an expression over `columns`; what it may refer to is checked there. `what` is for messages.
    fn check_expr(&mut self, text: &ast::ExprText, columns: &[ColumnDef], place: ExprPlace<'_>) -> Result<(), MySqlError>;

    /// An expression as the catalog keeps it and MySQL shows it.
    fn stored_text(&self, text: &ast::ExprText) -> String;
    /// The columns that a stored expression reads.
    fn columns_of(&mut self, expr: &str, columns: &[ColumnDef]) -> Result<Vec<usize>, MySqlError>;
    /// What a FULLTEXT index that is made now holds. `ngram`: WITH PARSER ngram.
    fn word_rules(&mut self, ngram: bool) -> Result<Arc<WordRules>, MySqlError>;
    /// The client is warned of this.
    fn add_warning(&mut self, warning: MySqlError);
    /// The session's variables.
    fn settings(&self) -> &Config;
}

/// Where a stored expression stands.
#[derive(Clone, Copy, Debug)]
pub enum ExprPlace<'a> {
    Default(&'a str),
    Generated(&'a str),
    Check(&'a str),
}

/// Names of at most 64 characters that do not end in a space.
pub fn check_column_name(name: &str) -> Result<(), MySqlError> {
    if name.is_empty() || name.ends_with(' ') {
        return Err(error::wrong_column_name(name));
    }
    check_length(name)
}

pub fn check_table_name(name: &str) -> Result<(), MySqlError> {
    if name.is_empty() || name.ends_with(' ') {
        return Err(error::wrong_table_name(name));
    }
    check_length(name)
}

pub fn check_length(name: &str) -> Result<(), MySqlError> {
    if name.chars().count() > 64 {
        return Err(error::too_long_ident(name));
    }
    Ok(())
}

/// A column definition, and the keys and checks written with it.
pub struct ResolvedColumn {
    pub def: ColumnDef,
    pub key: Option<IndexKind>,
    pub checks: Vec<ast::CheckDef>,
}

/// Resolves one column. `default` is the table's collation.
pub fn column(ast: &ast::ColumnDef, default: &'static Collation, cx: &mut dyn DefinitionChecks) -> Result<ResolvedColumn, MySqlError> {
    check_column_name(&ast.name)?;
    let ty = bind::resolve_type(&ast.ty, default, cx.settings().utf8mb4, &ast.name)?;
    let serial = ast.ty.kind == ast::DataTypeKind::Serial;
    let mut def = ColumnDef::new(&ast.name, ty);
    def.auto_increment = ast.auto_increment || serial;
    // Such a TIMESTAMP takes NULL only if that is written.
    let implicit = matches!(def.ty.kind, TypeKind::Timestamp(_)) && !cx.settings().explicit_timestamps;
    def.nullable = ast.nullable.unwrap_or(!implicit) && !ast.primary && !def.auto_increment;
    if ast.primary && ast.nullable == Some(true) {
        return Err(error::primary_cant_have_null());
    }
    def.invisible = ast.invisible == Some(true);
    def.explicit_collation = ast.ty.charset.is_some() || ast.ty.collation.is_some();
    if let Some(comment) = &ast.comment {
        if comment.chars().count() > 1024 {
            return Err(err(1629, format!("Comment for field '{}' is too long (max = 1024)", ast.name)));
        }
        def.comment = comment.as_str().into();
    }
    if let Some(generated) = &ast.generated {
        if def.auto_increment || ast.default.is_some() || ast.on_update.is_some() {
            return Err(err(1221, "Incorrect usage of DEFAULT and generated column"));
        }
        def.generated = Some(Generated { expr: cx.stored_text(&generated.expr), stored: generated.stored });
    }
    if def.auto_increment && !(def.ty.is_integer() || def.ty.is_real()) {
        return Err(error::wrong_field_spec(&ast.name));
    }
    if let Some(default) = &ast.default {
        def.default = resolve_default(default, &def, cx)?;
    }
    if let Some(fsp) = ast.on_update {
        if !matches!(def.ty.kind, TypeKind::DateTime(n) | TypeKind::Timestamp(n) if u32::from(n) == fsp) {
            return Err(err(1294, format!("Invalid ON UPDATE clause for '{}' column", ast.name)));
        }
        def.on_update_now = true;
    }
    let key = if ast.primary {
        Some(IndexKind::Primary)
    } else if ast.unique || serial {
        Some(IndexKind::Unique)
    } else {
        None
    };
    Ok(ResolvedColumn { def, key, checks: ast.checks.clone() })
}

/// What TIMESTAMP columns without NULL and DEFAULT have while `explicit_defaults_for_timestamp` is off: the first of the table follows the clock, the
/// others start as zero. `defined`: those of `columns` that the statement defines. Error 1067 where zero is no date.
pub fn implicit_timestamps(columns: &mut [ColumnDef], defined: &[bool], cx: &dyn DefinitionChecks) -> Result<(), MySqlError> {
    if cx.settings().explicit_timestamps {
        return Ok(());
    }
    let mut is_first = true;
    for (column, defined) in columns.iter_mut().zip(defined) {
        let TypeKind::Timestamp(fsp) = column.ty.kind else { continue };
        let first = std::mem::take(&mut is_first);
        if column.nullable || column.generated.is_some() || !matches!(column.default, Default::None) {
            continue;
        }
        if first && !column.on_update_now {
            column.on_update_now = true;
            // As in MySQL one that has been there stays without a default.
            if *defined {
                column.default = Default::CurrentTimestamp(fsp);
            }
        } else if cx.settings().modes.has(SqlModes::NO_ZERO_DATE) {
            return Err(error::invalid_default(&column.name));
        } else if *defined {
            column.default = Default::Literal(Value::DateTime(DateTime::default()));
        }
    }
    Ok(())
}

/// DEFAULT of a column whose type and nullability are known.
pub fn resolve_default(default: &ast::ColumnDefault, def: &ColumnDef, cx: &mut dyn DefinitionChecks) -> Result<Default, MySqlError> {
    if def.auto_increment {
        return Err(error::invalid_default(&def.name));
    }
    match default {
        ast::ColumnDefault::CurrentTimestamp(fsp) => match def.ty.kind {
            TypeKind::DateTime(n) | TypeKind::Timestamp(n) if u32::from(n) == *fsp => Ok(Default::CurrentTimestamp(n)),
            _ => Err(error::invalid_default(&def.name)),
        },
        ast::ColumnDefault::Expr(text) => Ok(Default::Expr(cx.stored_text(text))),
        ast::ColumnDefault::Literal(literal) => {
            let null = matches!(literal.kind, ast::ExprKind::Literal(ast::Literal::Null));
            if null {
                if !def.nullable {
                    return Err(error::invalid_default(&def.name));
                }
                return Ok(Default::Literal(Value::Null));
            }
            if def.ty.is_blob() {
                return Err(error::blob_cant_have_default(&def.name));
            }
            Ok(Default::Literal(cx.default_literal(literal, def)?))
        }
    }
}

/// Resolves an index over `columns`. Parts of a primary key make their columns NOT NULL.
pub fn index(ast: &ast::IndexDef, columns: &mut [ColumnDef], explicit_null: &[String], cx: &mut dyn DefinitionChecks) -> Result<IndexSpec, MySqlError> {
    let kind = match ast.kind {
        ast::IndexKind::Primary => IndexKind::Primary,
        ast::IndexKind::Unique => IndexKind::Unique,
        ast::IndexKind::Ordinary => IndexKind::Ordinary,
        ast::IndexKind::FullText => IndexKind::FullText,
        ast::IndexKind::Spatial => return Err(err(1464, "The used table type doesn't support SPATIAL indexes")),
    };
    if ast.parts.len() > 16 {
        return Err(error::too_many_key_parts());
    }
    if let Some(name) = &ast.name {
        check_length(name)?;
        if name.eq_ignore_ascii_case("primary") && kind != IndexKind::Primary {
            return Err(error::wrong_name_for_index(name));
        }
        if name.is_empty() || name.ends_with(' ') {
            return Err(error::wrong_name_for_index(name));
        }
    }
    if kind == IndexKind::Primary && ast.invisible {
        return Err(err(3522, "A primary key index cannot be invisible"));
    }
    if kind == IndexKind::FullText {
        return full_text_index(ast, columns, cx);
    }
    let mut parts: Vec<IndexPart> = Vec::with_capacity(ast.parts.len());
    let mut total = 0;
    for part in &ast.parts {
        let name = match &part.key {
            ast::IndexKey::Column(name) => name,
            ast::IndexKey::Expr => return Err(error::not_supported("functional key parts")),
        };
        let position = columns.iter().position(|c| same_name(&c.name, name)).ok_or_else(|| error::key_column_missing(name))?;
        if parts.iter().any(|p| p.column == position) {
            return Err(error::dup_fieldname(name));
        }
        let column = &mut columns[position];
        if column.ty.kind == TypeKind::Json {
            return Err(err(3152, format!("JSON column '{}' supports indexing only via generated columns on a specified JSON path.", column.name)));
        }
        if column.ty.is_geometry() {
            return Err(geometry_key(kind, column, part.prefix));
        }
        let prefix = key_prefix(&column.ty, &column.name, part.prefix)?;
        total += match prefix {
            Some(n) if column.ty.is_text() => u64::from(n) * column.ty.charset().max_bytes() as u64,
            Some(n) => u64::from(n),
            None => column.ty.max_bytes(),
        };
        if total > 3072 {
            return Err(error::too_long_key());
        }
        if kind == IndexKind::Primary {
            if explicit_null.iter().any(|n| same_name(n, name)) {
                return Err(error::primary_cant_have_null());
            }
            if column.generated.as_ref().is_some_and(|g| !g.stored) {
                return Err(err(3106, "'Defining a virtual generated column as primary key' is not supported for generated columns."));
            }
            column.nullable = false;
            if matches!(column.default, Default::Literal(Value::Null)) {
                return Err(error::primary_cant_have_null());
            }
        }
        parts.push(IndexPart { column: position, prefix, descending: part.desc });
    }
    let name = if kind == IndexKind::Primary { None } else { ast.name.as_deref().map(Str::from) };
    let comment = ast.comment.as_deref().unwrap_or("").into();
    Ok(IndexSpec { name, kind, parts, invisible: ast.invisible, generated: ast.generated, comment, words: WordRules::usual() })
}

/// An index of MySQL over geometries is a SPATIAL one, which is not there.
fn geometry_key(kind: IndexKind, column: &ColumnDef, prefix: Option<u32>) -> MySqlError {
    if prefix.is_some() {
        error::wrong_sub_key()
    } else if matches!(kind, IndexKind::Primary | IndexKind::Unique) {
        errors::spatial_unique_index()
    } else if column.nullable {
        errors::spatial_cant_have_null()
    } else {
        errors::table_cant_handle_spkeys()
    }
}

/// A FULLTEXT index: whole columns of text under one collation, whatever length is written.
fn full_text_index(ast: &ast::IndexDef, columns: &[ColumnDef], cx: &mut dyn DefinitionChecks) -> Result<IndexSpec, MySqlError> {
    let mut parts: Vec<IndexPart> = Vec::with_capacity(ast.parts.len());
    for part in &ast.parts {
        let name = match &part.key {
            ast::IndexKey::Column(name) => name,
            ast::IndexKey::Expr => return Err(errors::fulltext_functional_index()),
        };
        let position = columns.iter().position(|c| same_name(&c.name, name)).ok_or_else(|| error::key_column_missing(name))?;
        if parts.iter().any(|p| p.column == position) {
            return Err(error::dup_fieldname(name));
        }
        let column = &columns[position];
        if column.ty.kind == TypeKind::Json {
            return Err(err(3152, format!("JSON column '{}' supports indexing only via generated columns on a specified JSON path.", column.name)));
        }
        let first = parts.first().map_or(column, |first| &columns[first.column]);
        if !column.ty.is_text() || column.ty.collation != first.ty.collation {
            return Err(errors::bad_ft_column(&column.name));
        }
        if part.desc {
            return Err(err(1221, "Incorrect usage of spatial/fulltext/hash index and explicit index order"));
        }
        if column.generated.as_ref().is_some_and(|g| !g.stored) {
            return Err(err(3106, "'Fulltext index on virtual generated column' is not supported for generated columns."));
        }
        parts.push(IndexPart::column(position));
    }
    let comment = ast.comment.as_deref().unwrap_or("").into();
    let words = cx.word_rules(ast.ngram)?;
    Ok(IndexSpec { name: ast.name.as_deref().map(Str::from), kind: IndexKind::FullText, parts, invisible: ast.invisible, generated: false, comment, words })
}

/// The prefix of a key part: needed for TEXT and BLOB, meaningless for what is no string, dropped when it is the whole column.
fn key_prefix(ty: &ColumnType, name: &str, prefix: Option<u32>) -> Result<Option<u32>, MySqlError> {
    match prefix {
        None if ty.is_blob() => Err(error::blob_key_without_length(name)),
        None => Ok(None),
        Some(0) => Err(err(1391, format!("Key part '{name}' length cannot be 0"))),
        Some(n) => match ty.kind {
            TypeKind::Char(m) | TypeKind::VarChar(m) | TypeKind::Binary(m) | TypeKind::VarBinary(m) => match n.cmp(&m) {
                std::cmp::Ordering::Greater => Err(error::wrong_sub_key()),
                std::cmp::Ordering::Equal => Ok(None),
                std::cmp::Ordering::Less => Ok(Some(n)),
            },
            _ if ty.is_blob() => Ok(Some(n)),
            _ => Err(error::wrong_sub_key()),
        },
    }
}

/// Everything of CREATE TABLE but LIKE, PARTITION BY and the SELECT's columns, which the caller appends first (`extra`).
pub fn table(
    ast: &ast::CreateTable,
    schema: &str,
    default_collation: &'static Collation,
    extra: Vec<ColumnDef>,
    cx: &mut dyn DefinitionChecks,
) -> Result<TableSpec, MySqlError> {
    check_table_name(&ast.name.name)?;
    let options = &ast.options;
    let collation = collation_of(options.charset.as_deref(), options.collation.as_deref(), cx.settings().utf8mb4)?.unwrap_or(default_collation);
    let mut spec = TableSpec::new(schema, &ast.name.name, Vec::new(), Vec::new());
    spec.collation = collation;
    apply_options(&mut spec, options)?;
    let mut explicit_null = Vec::new();
    let mut keys: Vec<ast::IndexDef> = Vec::new();
    let mut checks: Vec<ast::CheckDef> = Vec::new();
    for column_ast in &ast.columns {
        let resolved = column(column_ast, collation, cx)?;
        if column_ast.nullable == Some(true) {
            explicit_null.push(column_ast.name.clone());
        }
        if let Some(kind) = resolved.key {
            keys.push(column_key(kind, &column_ast.name));
        }
        checks.extend(resolved.checks);
        push_column(&mut spec.columns, resolved.def)?;
    }
    for column in extra {
        match spec.columns.iter().position(|c| same_name(&c.name, &column.name)) {
            Some(_) => {}
            None => spec.columns.push(column),
        }
    }
    let defined = vec![true; spec.columns.len()];
    implicit_timestamps(&mut spec.columns, &defined, cx)?;
    let before = keys.len();
    keys.extend(ast.indexes.iter().cloned());
    for key in ast.foreign_keys.iter().rev() {
        keys.insert(before + key.position, foreign_key_index(key));
    }
    drop_needless(&mut keys);
    checks.extend(ast.checks.iter().cloned());
    // The primary key first, then unique keys, those of words last, as MySQL orders them; otherwise as written.
    keys.sort_by_key(|k| match k.kind {
        ast::IndexKind::Primary => 0,
        ast::IndexKind::Unique => 1,
        ast::IndexKind::FullText => 3,
        _ => 2,
    });
    for key in &keys {
        let resolved = index(key, &mut spec.columns, &explicit_null, cx)?;
        add_index(&mut spec, resolved, cx)?;
    }
    for check in &checks {
        add_check(&mut spec, check, cx)?;
    }
    check_stored_exprs(&spec, &ast.columns, cx)?;
    for key in &ast.foreign_keys {
        add_foreign_key(&mut spec, key, false, cx)?;
    }
    check_actions(&spec, cx)?;
    finish(&spec)?;
    Ok(spec)
}

/// The index that a foreign key needs if there is no other.
fn foreign_key_index(key: &ast::ForeignKeyDef) -> ast::IndexDef {
    let part = |column: &String| ast::IndexPart { key: ast::IndexKey::Column(column.clone()), prefix: None, desc: false };
    ast::IndexDef {
        kind: ast::IndexKind::Ordinary,
        name: key.name.clone().or_else(|| key.index_name.clone()),
        parts: key.columns.iter().map(part).collect(),
        invisible: false,
        generated: true,
        comment: None,
        using: None,
        ngram: false,
    }
}

/// Takes out generated indexes that other ones begin with. Of two that are alike the later one stays.
fn drop_needless(keys: &mut Vec<ast::IndexDef>) {
    let begins = |key: &ast::IndexDef, with: &ast::IndexDef| {
        key.kind != ast::IndexKind::FullText
            && key.parts.len() >= with.parts.len()
            && key.parts.iter().zip(&with.parts).all(|(a, b)| match (&a.key, &b.key) {
                (ast::IndexKey::Column(a_name), ast::IndexKey::Column(b_name)) => same_name(a_name, b_name) && a.prefix == b.prefix,
                _ => false,
            })
    };
    let needless = |keys: &[ast::IndexDef]| {
        (0..keys.len()).find(|&at| {
            let alike = |other: usize| keys[other].generated && keys[other].parts.len() == keys[at].parts.len() && other < at;
            keys[at].generated && (0..keys.len()).any(|other| other != at && begins(&keys[other], &keys[at]) && !alike(other))
        })
    };
    while let Some(at) = needless(keys) {
        keys.remove(at);
    }
}

/// Adds a foreign key, named `table_ibfk_n` if it has no name; and an index for it, if there is none. Returns its name.
pub fn add_foreign_key(spec: &mut TableSpec, key: &ast::ForeignKeyDef, altering: bool, cx: &mut dyn DefinitionChecks) -> Result<Str, MySqlError> {
    let shown = key.name.as_deref().unwrap_or("foreign key without name");
    if key.columns.len() != key.parent_columns.len() {
        return Err(errors::wrong_fk_def(shown, "Key reference and table reference don't match"));
    }
    let mut columns = Vec::with_capacity(key.columns.len());
    for name in &key.columns {
        let column = spec.columns.iter().position(|c| same_name(&c.name, name)).ok_or_else(|| error::key_column_missing(name))?;
        if columns.contains(&column) {
            return Err(error::dup_fieldname(name));
        }
        columns.push(column);
    }
    let name: Str = match key.name.as_ref().or(key.index_name.as_ref()) {
        Some(name) => {
            check_length(name)?;
            name.as_str().into()
        }
        None => {
            let prefix = format!("{}_ibfk_", spec.name);
            let numbers = spec.foreign_keys.iter().filter_map(|other| other.name.strip_prefix(&*prefix)?.parse::<u32>().ok());
            format!("{prefix}{}", numbers.max().unwrap_or(0) + 1).into()
        }
    };
    let (on_delete, on_update) = (action(key.on_delete)?, action(key.on_update)?);
    let serves = |index: &IndexSpec| {
        let parts = index.parts.get(..columns.len());
        parts.is_some_and(|parts| parts.iter().zip(&columns).all(|(part, column)| part.column == *column && part.prefix.is_none()))
    };
    // As in MySQL the index made for an earlier foreign key of these columns gives way.
    if altering {
        spec.indexes.retain(|index| !(index.generated && index.parts.len() == columns.len() && serves(index)));
    }
    if !spec.indexes.iter().any(serves) {
        let wanted = index(&foreign_key_index(key), &mut spec.columns, &[], cx)?;
        push_index(spec, wanted)?;
    }
    spec.foreign_keys.push(ForeignKeyDef {
        name: name.clone(),
        columns,
        parent_schema: key.parent.schema.as_deref().map_or_else(|| spec.schema.clone(), Str::from),
        parent_table: key.parent.name.as_str().into(),
        parent_columns: key.parent_columns.iter().map(|name| name.as_str().into()).collect(),
        on_delete,
        on_update,
    });
    Ok(name)
}

/// InnoDB has no SET DEFAULT.
fn action(ast: ast::ReferenceAction) -> Result<ReferenceAction, MySqlError> {
    Ok(match ast {
        ast::ReferenceAction::NoAction => ReferenceAction::NoAction,
        ast::ReferenceAction::Restrict => ReferenceAction::Restrict,
        ast::ReferenceAction::Cascade => ReferenceAction::Cascade,
        ast::ReferenceAction::SetNull => ReferenceAction::SetNull,
        ast::ReferenceAction::SetDefault => return Err(errors::cannot_add_foreign()),
    })
}

/// Columns that a foreign key's action changes may not be what a stored generated column (1215) or a CHECK (3823) is made of.
pub fn check_actions(spec: &TableSpec, cx: &mut dyn DefinitionChecks) -> Result<(), MySqlError> {
    for key in &spec.foreign_keys {
        if key.on_delete.refuses() && key.on_update.refuses() {
            continue;
        }
        for column in spec.columns.iter().filter(|column| column.generated.as_ref().is_some_and(|g| g.stored)) {
            let Some(generated) = &column.generated else { continue };
            if cx.columns_of(&generated.expr, &spec.columns)?.iter().any(|column| key.columns.contains(column)) {
                return Err(errors::cannot_add_foreign());
            }
        }
        let changes = key.on_delete == ReferenceAction::SetNull || !key.on_update.refuses();
        for check in spec.checks.iter().filter(|_| changes) {
            if let Some(column) = cx.columns_of(&check.expr, &spec.columns)?.into_iter().find(|column| key.columns.contains(column)) {
                let column = &spec.columns[column].name;
                return Err(errors::check_constraint_clause_using_fk_refer_action_column(column, &check.name, &key.name));
            }
        }
    }
    Ok(())
}

/// UNIQUE or PRIMARY KEY written with a column.
pub fn column_key(kind: IndexKind, column: &str) -> ast::IndexDef {
    ast::IndexDef {
        kind: if kind == IndexKind::Primary { ast::IndexKind::Primary } else { ast::IndexKind::Unique },
        name: None,
        parts: vec![ast::IndexPart { key: ast::IndexKey::Column(column.to_owned()), prefix: None, desc: false }],
        invisible: false,
        generated: false,
        comment: None,
        using: None,
        ngram: false,
    }
}

pub fn push_column(columns: &mut Vec<ColumnDef>, column: ColumnDef) -> Result<(), MySqlError> {
    if columns.iter().any(|c| same_name(&c.name, &column.name)) {
        return Err(error::dup_fieldname(&column.name));
    }
    columns.push(column);
    Ok(())
}

/// Adds an index that a statement asks for, with warning 1831 if it has the kind and the columns of another one.
pub fn add_index(spec: &mut TableSpec, index: IndexSpec, cx: &mut dyn DefinitionChecks) -> Result<(), MySqlError> {
    let repeats = !index.generated && spec.indexes.iter().any(|other| !other.generated && other.kind == index.kind && other.parts == index.parts);
    push_index(spec, index)?;
    if repeats && let Some(IndexSpec { name: Some(name), .. }) = spec.indexes.last() {
        cx.add_warning(errors::dup_index(name, &spec.schema, &spec.name));
    }
    Ok(())
}

/// Adds an index, naming it after its first column if it has no name.
pub fn push_index(spec: &mut TableSpec, mut index: IndexSpec) -> Result<(), MySqlError> {
    if index.kind == IndexKind::Primary {
        if spec.indexes.iter().any(|i| i.kind == IndexKind::Primary) {
            return Err(error::multiple_pri_key());
        }
        spec.indexes.insert(0, index);
        return Ok(());
    }
    let taken = |name: &str| spec.indexes.iter().any(|i| i.name.as_deref().is_some_and(|n| same_name(n, name)));
    match &index.name {
        Some(name) if taken(name) => return Err(error::dup_keyname(name)),
        Some(_) => {}
        None => {
            let base = spec.columns[index.parts[0].column].name.clone();
            let base = if base.eq_ignore_ascii_case("primary") { Str::from(format!("{base}_2")) } else { base };
            let mut name = base.clone();
            let mut n = 2;
            while taken(&name) {
                name = format!("{base}_{n}").into();
                n += 1;
            }
            index.name = Some(name);
        }
    }
    if spec.indexes.len() >= 64 {
        return Err(err(1069, "Too many keys specified; max 64 keys allowed"));
    }
    spec.indexes.push(index);
    Ok(())
}

/// Adds a CHECK, named `table_chk_n` if it has no name.
pub fn add_check(spec: &mut TableSpec, check: &ast::CheckDef, cx: &mut dyn DefinitionChecks) -> Result<(), MySqlError> {
    let taken = |name: &str| spec.checks.iter().any(|c| same_name(&c.name, name));
    let name: Str = match &check.name {
        Some(name) if taken(name) => return Err(error::check_dup_name(name)),
        Some(name) => {
            check_length(name)?;
            name.as_str().into()
        }
        None => (1..).map(|n| format!("{}_chk_{n}", spec.name)).find(|n| !taken(n)).expect("numbers do not end").into(),
    };
    cx.check_expr(&check.expr, &spec.columns, ExprPlace::Check(&name))?;
    spec.checks.push(CheckDef { name, expr: cx.stored_text(&check.expr), enforced: check.enforced });
    Ok(())
}

/// Defaults and generated columns are checked when all columns are known.
fn check_stored_exprs(spec: &TableSpec, columns: &[ast::ColumnDef], cx: &mut dyn DefinitionChecks) -> Result<(), MySqlError> {
    for column in columns {
        if let Some(ast::ColumnDefault::Expr(text)) = &column.default {
            cx.check_expr(text, &spec.columns, ExprPlace::Default(&column.name))?;
        }
        if let Some(generated) = &column.generated {
            cx.check_expr(&generated.expr, &spec.columns, ExprPlace::Generated(&column.name))?;
        }
    }
    Ok(())
}

/// What holds for a whole table, whether created or altered.
pub fn finish(spec: &TableSpec) -> Result<(), MySqlError> {
    if spec.columns.is_empty() {
        return Err(error::must_have_columns());
    }
    if spec.columns.iter().all(|c| c.invisible) {
        return Err(error::must_have_visible_column());
    }
    if spec.columns.len() > 1017 {
        return Err(error::too_many_fields());
    }
    let autos: Vec<usize> = (0..spec.columns.len()).filter(|&i| spec.columns[i].auto_increment).collect();
    match autos[..] {
        [] => {}
        [only] if spec.indexes.iter().any(|i| i.parts.first().is_some_and(|p| p.column == only)) => {}
        _ => return Err(error::wrong_auto_key()),
    }
    let width: u64 = spec
        .columns
        .iter()
        .map(|c| if c.ty.is_blob() { 12 } else { c.ty.max_bytes() + if matches!(c.ty.kind, TypeKind::VarChar(_) | TypeKind::VarBinary(_)) { 2 } else { 0 } })
        .sum();
    if width > 65_535 {
        return Err(err(
            1118,
            "Row size too large. The maximum row size for the used table type, not counting BLOBs, is 65535. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs",
        ));
    }
    Ok(())
}

/// ENGINE has been checked by the caller; charset and collation too.
pub fn apply_options(spec: &mut TableSpec, options: &ast::TableOptions) -> Result<(), MySqlError> {
    if let Some(comment) = &options.comment {
        if comment.chars().count() > 2048 {
            return Err(err(1628, format!("Comment for table '{}' is too long (max = 2048)", spec.name)));
        }
        spec.comment = comment.as_str().into();
    }
    if let Some(format) = &options.row_format {
        spec.row_format = if format == "DEFAULT" { None } else { Some(format.as_str().into()) };
    }
    if let Some(next) = options.auto_increment {
        spec.auto_increment = Some(next.max(1));
    }
    Ok(())
}

/// Names of columns and indexes compare without case.
pub fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}
