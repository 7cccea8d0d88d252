//! INSERT, REPLACE and LOAD DATA.

use std::sync::Arc;

use highkey_table::{ColumnDef, Privileges, Table, TableDef};
use highkey_types::{Charset, Collation, ColumnType, MySqlError, Str, TypeKind};

use super::binder::{Binder, Result};
use super::dml::{AssignedValue, BoundInsert, BoundLoad, BoundLoadTarget, BoundSource, RowValue, ViewCheck};
use super::errors;
use super::from::{no_partitions, table_fields, with_partitions};
use super::merge::{as_bytes, coerce, is_recoded};
use super::scope::{Clause, FromScope, Scope, is_column, same_name};
use super::update::computed_tables;
use super::view::{leaf, not_updatable_column, root};
use crate::parse::ast::{self, ColumnRef, ExprKind as Ast, InsertSource, LoadTarget};
use crate::plan::{Expr, ExprType, Field, Rel, RelKind};

impl Binder<'_> {
    pub fn insert(&mut self, insert: &ast::Insert) -> Result<BoundInsert> {
        self.operation = if insert.replace { "REPLACE" } else { "INSERT" };
        let mut wanted = if insert.replace { Privileges::INSERT.and(Privileges::DELETE) } else { Privileges::INSERT };
        if !insert.on_duplicate.is_empty() {
            wanted = wanted.and(Privileges::UPDATE);
        }
        let mut target = self.row_target(&insert.table, insert.columns.as_deref(), wanted)?;
        target.choose_partitions(&insert.partitions)?;
        let def = target.table.def().clone();
        let empty = matches!(&insert.source, InsertSource::Values(rows) if rows.iter().all(Vec::is_empty));
        let columns = target.columns(insert.columns.as_deref(), empty)?;
        self.check_filled(&insert.table, insert.columns.as_ref().is_some_and(|listed| !listed.is_empty()), columns.iter().map(|column| &target.fields[*column]))?;
        if !insert.ignore {
            self.check_view_defaults(&target, &columns)?;
        }
        if matches!(insert.source, InsertSource::Values(_)) {
            self.changing = Some((target.table.clone(), Str::from(insert.table.name.as_str())));
            self.inserting = true;
        }
        let (source, on_duplicate) = match &insert.source {
            InsertSource::Values(rows) => {
                let scope = Scope { clause: Some(Clause::Values), ..Scope::new(FromScope::of(target.fields.clone())) };
                let (rows, _) = self.within(scope, |binder| binder.insert_rows(rows, &columns, &def))?;
                (BoundSource::Rows(rows), self.on_duplicate(insert, &target, &columns, &[])?)
            }
            InsertSource::Query(query) => {
                let mut bound = self.statement_query(query)?;
                if bound.rel.fields.len() != columns.len() {
                    return Err(count_mismatch(1));
                }
                let on_duplicate = self.on_duplicate_of_query(insert, &target, &columns, query, &mut bound.rel)?;
                self.show_for(&mut bound.rel, &columns, &def);
                (BoundSource::Query(Box::new(bound)), on_duplicate)
            }
        };
        let mut hints = super::hints::hints(&insert.hints, false);
        if insert.delayed {
            let verb = if insert.replace { "REPLACE" } else { "INSERT" };
            let converted = highkey_types::errors::warn_legacy_syntax_converted(format!("{verb} DELAYED"), verb);
            hints.warnings.insert(0, (converted.code, converted.message));
        }
        // Whether all tables are locked comes first.
        self.check_locked(&insert.table, &insert.table.name, true)?;
        let views = self.views.clone();
        Ok(BoundInsert { table: target.table, replace: insert.replace, ignore: insert.ignore, columns, source, on_duplicate, check: target.check, views, hints })
    }

    /// The columns that rows are made of: each one has to be granted if the statement lists them, or else the table.
    fn check_filled<'f>(&self, name: &ast::ObjectName, listed: bool, mut columns: impl Iterator<Item = &'f Field>) -> Result<()> {
        if listed {
            return columns.try_for_each(|field| self.check_field(Privileges::INSERT, field));
        }
        self.check_all_columns(Privileges::INSERT, name)?;
        columns.try_for_each(|field| self.check_column_through(Privileges::INSERT, field))
    }

    /// What rows are put into: a table, or one behind a view. `listed`: the columns that the statement names; `wanted`: what it does with rows.
    fn row_target(&mut self, name: &ast::ObjectName, listed: Option<&[ColumnRef]>, wanted: Privileges) -> Result<RowTarget> {
        self.check_change(wanted, name)?;
        self.check_locked(name, &name.name, false)?;
        let Some(view) = self.named_view(name)? else {
            let table = self.target_table(name)?;
            let fields = table_fields(table.def(), &table.def().name);
            let visible = table.def().columns.iter().enumerate().filter(|(_, c)| !c.invisible).map(|(i, _)| i).collect();
            return Ok(RowTarget { table, fields, visible, view: None, check: None });
        };
        let def = view.def();
        let full_name = format!("{}.{}", def.schema, def.name);
        let not_insertable = MySqlError::with_message(1471, format!("The target table {} of the INSERT is not insertable-into", def.name));
        // All that it joins has to be tables.
        let Some(exposed) = self.exposed_view(&view, &def.name)?.filter(|exposed| computed_tables(&exposed.rel).is_empty()) else { return Err(not_insertable) };
        self.check_through(wanted, &def.name)?;
        let check = self.single_target(&exposed, def, self.operation)?.and_then(|target| target.check);
        let columns: Vec<(&Field, Option<(&Rel, usize)>)> =
            exposed.scope.star.iter().map(|i| (&exposed.scope.fields[*i], root(&exposed.rel, *i).filter(|(scan, _)| matches!(scan.kind, RelKind::Scan { .. })))).collect();
        let is_copied = |position: &usize| leaf(&exposed.rel, *position).is_some_and(|(leaf, _)| !matches!(leaf.kind, RelKind::Scan { .. }));
        if exposed.scope.star.iter().any(is_copied) {
            return Err(not_insertable);
        }
        let find = |name: &ColumnRef| {
            let found = columns.iter().position(|(field, _)| same_name(&field.name, &name.column));
            found.ok_or_else(|| errors::unknown_column(&name.to_string(), "field list"))
        };
        let chosen: Vec<usize> = match listed {
            Some(names) => names.iter().map(find).collect::<Result<_>>()?,
            None => (0..columns.len()).collect(),
        };
        if let Some(i) = chosen.iter().find(|i| columns[**i].1.is_none()) {
            return Err(not_updatable_column(&columns[*i].0.name));
        }
        let places: Option<Vec<(*const Rel, usize)>> = columns.iter().map(|(_, place)| place.map(|(scan, column)| (std::ptr::from_ref(scan), column))).collect();
        let Some(places) = places.filter(|places| (1..places.len()).all(|i| !places[..i].contains(&places[i]))) else { return Err(not_insertable) };
        if places.iter().any(|(scan, _)| *scan != places[0].0) {
            if listed.is_none() {
                return Err(MySqlError::with_message(1394, format!("Can not insert into join view '{full_name}' without fields list")));
            }
            if chosen.iter().any(|i| places[*i].0 != places[chosen[0]].0) {
                return Err(MySqlError::with_message(1393, format!("Can not modify more than one base table through a join view '{full_name}'")));
            }
        }
        let first = chosen.first().copied().unwrap_or(0);
        let Some((Rel { kind: RelKind::Scan { table, .. }, .. }, _)) = columns.get(first).and_then(|(_, place)| *place) else { return Err(not_insertable) };
        let unnamed = |f: Field| Field { name: Str::from(""), schema: def.schema.clone(), org_table: def.name.clone(), ..f };
        let mut fields: Vec<Field> = table_fields(table.def(), &def.name).into_iter().map(unnamed).collect();
        let mut visible = Vec::new();
        for ((field, _), (scan, column)) in columns.iter().zip(&places) {
            if *scan == places[first].0 {
                fields[*column].name = field.name.clone();
                fields[*column].org_name = field.name.clone();
                visible.push(*column);
            }
        }
        Ok(RowTarget { table: table.clone(), fields, visible, view: Some(full_name), check })
    }

    /// Error 1423: a column that has no default, and that the statement does not give through the view.
    fn check_view_defaults(&self, target: &RowTarget, columns: &[usize]) -> Result<()> {
        let Some(view) = &target.view else { return Ok(()) };
        if !self.cx.strict() {
            return Ok(());
        }
        let lacks = |(i, column): (usize, &highkey_table::ColumnDef)| column.lacks_default() && !columns.contains(&i);
        if target.table.def().columns.iter().enumerate().any(lacks) {
            return Err(MySqlError::with_message(1423, format!("Field of view '{view}' underlying table doesn't have a default value")));
        }
        Ok(())
    }

    /// The outputs of a query as the columns take them, and those behind as they are: see `shown` and `as_bytes`.
    fn show_for(&self, rel: &mut Rel, columns: &[usize], def: &TableDef) {
        let shows = |(field, column): (&Field, &usize)| field.ty.ty.is_temporal() && field.ty.ty.fsp() > 0 && def.columns[*column].ty.is_string();
        let recodes = |(field, column): (&Field, &usize)| def.columns[*column].ty.is_binary() && is_recoded(&field.ty.ty);
        let numbers = |(field, column): (&Field, &usize)| !field.org_name.is_empty() && is_number_to(&field.ty.ty, &def.columns[*column].ty);
        let floats = |(field, column): (&Field, &usize)| field.ty.ty.kind == TypeKind::Float && def.columns[*column].ty.is_string();
        if !rel.fields.iter().zip(columns).any(|output| shows(output) || recodes(output) || numbers(output) || floats(output)) {
            return;
        }
        let outputs = rel.fields.iter().enumerate().map(|(i, field)| {
            let output = Expr::column(i, field.ty.clone());
            match columns.get(i) {
                Some(column) if shows((field, column)) => self.shown_moment(output),
                Some(column) if recodes((field, column)) => as_bytes(output, &self.folder),
                Some(column) if numbers((field, column)) => coerce(output, &ExprType::bigint(field.ty.nullable)),
                // A string takes the digits of the double.
                Some(column) if floats((field, column)) => coerce(output, &ExprType::double(field.ty.nullable)),
                _ => output,
            }
        });
        let exprs: Vec<Expr> = outputs.collect();
        let fields = exprs.iter().zip(&rel.fields).map(|(e, f)| Field { ty: e.ty.clone(), ..f.clone() }).collect();
        *rel = std::mem::replace(rel, Rel::dual()).project(exprs, fields);
    }

    fn insert_rows(&mut self, rows: &[Vec<ast::Expr>], columns: &[usize], def: &TableDef) -> Result<Vec<Vec<RowValue>>> {
        let mut bound = Vec::with_capacity(rows.len());
        for (i, row) in rows.iter().enumerate() {
            if row.is_empty() {
                bound.push(columns.iter().map(|_| RowValue::Assigned(AssignedValue::Default)).collect());
                continue;
            }
            if row.len() != columns.len() {
                return Err(count_mismatch(i + 1));
            }
            let values = row.iter().zip(columns).map(|(e, c)| self.row_value(e, def, *c)).collect::<Result<Vec<_>>>()?;
            bound.push(values);
        }
        Ok(bound)
    }

    fn row_value(&mut self, expr: &ast::Expr, def: &TableDef, column: usize) -> Result<RowValue> {
        let target = &def.columns[column];
        if let Ast::Literal(literal) = &expr.kind
            && target.generated.is_none()
            && !target.ty.is_binary()
            && let Some(value) = self.plain_literal(literal)
        {
            return Ok(RowValue::Literal(value));
        }
        self.assigned(expr, def, column).map(RowValue::Assigned)
    }

    /// A value for a column: DEFAULT, or an expression; hexadecimal literals are numbers for numeric columns.
    pub fn assigned(&mut self, expr: &ast::Expr, def: &TableDef, column: usize) -> Result<AssignedValue> {
        let target = &def.columns[column];
        let value = match &expr.kind {
            Ast::Default(None) => return Ok(AssignedValue::Default),
            Ast::Default(Some(name)) => match self.viewed_column(name)? {
                Some((table, other)) if table.id() == def.id && other == column => return own_default(target),
                Some((table, other)) => self.default_value(table.def(), other)?,
                None => {
                    let other = def.column(&name.column).ok_or_else(|| errors::unknown_column(&name.to_string(), "field list"))?;
                    if other == column {
                        return own_default(target);
                    }
                    self.default_value(def, other)?
                }
            },
            Ast::Literal(literal) if target.ty.is_number() => match self.numeric_literal(literal) {
                Some(number) => number,
                None => self.expr(expr)?,
            },
            _ => self.expr(expr)?,
        };
        if target.generated.is_some() {
            return Err(MySqlError::with_message(
                3105,
                format!("The value specified for generated column '{}' in table '{}' is not allowed.", target.name, def.name),
            ));
        }
        let value = match target.ty.is_string() {
            true => coerce_float(self.shown_moment(value)),
            false if is_column(&value) && is_number_to(&value.ty.ty, &target.ty) => coerce(value.clone(), &ExprType::bigint(value.ty.nullable)),
            false => value,
        };
        Ok(AssignedValue::Expr(if target.ty.is_binary() { as_bytes(value, &self.folder) } else { value }))
    }

    /// DEFAULT(column) as an expression.
    pub fn default_value(&mut self, def: &TableDef, column: usize) -> Result<crate::plan::Expr> {
        use crate::plan::{Expr, ExprType};
        let target = &def.columns[column];
        let ty = ExprType::column(target.ty.clone(), target.nullable);
        match &target.default {
            highkey_table::Default::Literal(value) => Ok(Expr::literal(value.clone(), ty)),
            highkey_table::Default::Expr(text) => self.expr(&crate::parse::parse_expr(text)?),
            highkey_table::Default::CurrentTimestamp(fsp) => {
                self.call(crate::functions::FuncId::Now, vec![Expr::int(i64::from(*fsp))])
            }
            highkey_table::Default::None if target.nullable => Ok(Expr { ty, ..Expr::null() }),
            highkey_table::Default::None | highkey_table::Default::Dropped => Err(MySqlError::with_message(1364, format!("Field '{}' doesn't have a default value", target.name))),
        }
    }

    /// ON DUPLICATE KEY UPDATE of a query's rows, which may name columns of its FROM too: `rel` gets those as outputs behind its own.
    fn on_duplicate_of_query(&mut self, insert: &ast::Insert, target: &RowTarget, columns: &[usize], query: &ast::Query, rel: &mut Rel) -> Result<Vec<(usize, AssignedValue)>> {
        // Aggregates without GROUP BY do not bind so: then there is no row of FROM to name.
        let wide = if insert.on_duplicate.is_empty() { None } else { with_from(query).and_then(|wide| self.statement_query(&wide).ok()) };
        let beside: Vec<Field> = wide.as_ref().map_or_else(Vec::new, |wide| wide.rel.fields[columns.len()..].to_vec());
        let mut assigned = self.on_duplicate(insert, target, columns, &beside)?;
        let base = 2 * target.table.def().columns.len();
        let mut used: Vec<usize> = assigned.iter().filter_map(|(_, value)| value.expr()).flat_map(Expr::columns).filter(|column| *column >= base).collect();
        used.sort_unstable();
        used.dedup();
        if let Some(wide) = wide
            && !used.is_empty()
        {
            for expr in assigned.iter_mut().filter_map(|(_, value)| value.expr_mut()) {
                expr.map_columns(&mut |column: usize| used.binary_search(&column).map_or(column, |at| base + at));
            }
            let outputs: Vec<usize> = (0..columns.len()).chain(used.iter().map(|column| column - base + columns.len())).collect();
            let exprs = outputs.iter().map(|i| Expr::column(*i, wide.rel.fields[*i].ty.clone())).collect();
            let fields = outputs.iter().map(|i| wide.rel.fields[*i].clone()).collect();
            *rel = wide.rel.project(exprs, fields);
        }
        Ok(assigned)
    }

    /// ON DUPLICATE KEY UPDATE over the existing row followed by the proposed one, and then by `beside`.
    fn on_duplicate(&mut self, insert: &ast::Insert, target: &RowTarget, columns: &[usize], beside: &[Field]) -> Result<Vec<(usize, AssignedValue)>> {
        if insert.on_duplicate.is_empty() {
            return Ok(Vec::new());
        }
        let def = target.table.def();
        let width = def.columns.len();
        let mut fields = target.fields.clone();
        let (alias, names) = match &insert.row_alias {
            Some((alias, names)) => (alias.as_str(), names.as_slice()),
            None => ("", [].as_slice()),
        };
        let mut proposed: Vec<Field> = target.fields.iter().map(|f| Field { table: Str::from(alias), ..f.clone() }).collect();
        if !names.is_empty() {
            if names.len() != columns.len() {
                return Err(MySqlError::with_message(1353, "Column list of the row alias does not match"));
            }
            for (name, column) in names.iter().zip(columns) {
                proposed[*column].name = Str::from(name.as_str());
            }
        }
        fields.extend(proposed);
        fields.extend_from_slice(beside);
        let hidden = if insert.row_alias.is_some() { Vec::new() } else { (width..2 * width).collect() };
        let from = FromScope { star: (0..2 * width).collect(), fields, hidden };
        let scope = Scope { clause: Some(Clause::Values), values_base: Some(width), ..Scope::new(from) };
        let (bound, _) = self.within(scope, |binder| {
            let mut bound = Vec::new();
            for assignment in &insert.on_duplicate {
                let column = target.column(&assignment.column)?;
                binder.check_field(Privileges::UPDATE, &target.fields[column])?;
                bound.push((column, binder.assigned(&assignment.value, def, column)?));
            }
            Ok(bound)
        })?;
        Ok(bound)
    }

    pub fn load(&mut self, load: &ast::LoadData) -> Result<BoundLoad> {
        self.operation = "LOAD";
        let listed = load.targets.iter().filter_map(|target| match target {
            LoadTarget::Column(name) => Some(ColumnRef { schema: None, table: None, column: name.clone() }),
            LoadTarget::Variable(_) => None,
        });
        let listed: Vec<ColumnRef> = listed.collect();
        let wanted = if load.duplicates == ast::LoadDuplicates::Replace { Privileges::INSERT.and(Privileges::DELETE) } else { Privileges::INSERT };
        let mut target = self.row_target(&load.table, (!load.targets.is_empty()).then_some(&listed), wanted)?;
        target.choose_partitions(&load.partitions)?;
        self.check_locked(&load.table, &load.table.name, true)?;
        let def = target.table.def().clone();
        let targets = if load.targets.is_empty() {
            target.columns(None, false)?.into_iter().filter(|i| def.columns[*i].generated.is_none()).map(BoundLoadTarget::Column).collect()
        } else {
            load.targets
                .iter()
                .map(|field| match field {
                    LoadTarget::Column(name) => {
                        let name = ColumnRef { schema: None, table: None, column: name.clone() };
                        Ok(BoundLoadTarget::Column(target.column(&name)?))
                    }
                    LoadTarget::Variable(name) => Ok(BoundLoadTarget::Variable(Str::from(name.to_lowercase()))),
                })
                .collect::<Result<Vec<_>>>()?
        };
        let filled = targets.iter().filter_map(|t| if let BoundLoadTarget::Column(column) = t { Some(&target.fields[*column]) } else { None });
        self.check_filled(&load.table, !load.targets.is_empty(), filled)?;
        if load.format.is_fixed() {
            let is_long = |t: &BoundLoadTarget| matches!(t, BoundLoadTarget::Column(c) if def.columns[*c].ty.is_blob());
            if load.format.line_terminator.is_empty() && targets.iter().any(is_long) {
                return Err(errors::blobs_and_no_terminator());
            }
            if targets.iter().any(|t| matches!(t, BoundLoadTarget::Variable(_))) {
                return Err(errors::fixed_rows_to_variable());
            }
        }
        let charset = match &load.charset {
            Some(name) => super::collation::charset_by_name(name)?,
            None => {
                let database = self.cx.system_var(None, "character_set_database")?;
                database.as_str().and_then(Charset::by_name).unwrap_or(Charset::Utf8mb4)
            }
        };
        let variables = targets.iter().filter_map(|t| if let BoundLoadTarget::Variable(name) = t { Some(name.clone()) } else { None });
        self.loaded = Some((variables.collect(), Collation::default_of(charset)));
        let scope = Scope { clause: Some(Clause::Values), ..Scope::new(FromScope::of(target.fields.clone())) };
        let (assignments, _) = self.within(scope, |binder| {
            let mut bound = Vec::new();
            for assignment in &load.assignments {
                let column = target.column(&assignment.column)?;
                binder.check_field(Privileges::INSERT, &target.fields[column])?;
                bound.push((column, binder.assigned(&assignment.value, &def, column)?));
            }
            Ok(bound)
        })?;
        Ok(BoundLoad {
            table: target.table,
            check: target.check,
            views: self.views.clone(),
            local: load.local,
            path: load.path.clone(),
            duplicates: load.duplicates,
            charset: load.charset.clone(),
            format: load.format.clone(),
            ignore_lines: load.ignore_lines,
            targets,
            assignments,
        })
    }
}

/// What rows are put into, by the names that the statement may use.
struct RowTarget {
    table: Arc<Table>,
    /// The table's columns; those that a view does not have, without a name.
    fields: Vec<Field>,
    /// The columns that are meant without a list.
    visible: Vec<usize>,
    /// Schema and name of the view, with a dot.
    view: Option<String>,
    check: Option<Arc<ViewCheck>>,
}

impl RowTarget {
    /// PARTITION (…), if it is written.
    fn choose_partitions(&mut self, partitions: &[String]) -> Result<()> {
        if self.view.is_some() && !partitions.is_empty() {
            return Err(no_partitions());
        }
        self.table = with_partitions(self.table.clone(), partitions)?;
        Ok(())
    }

    /// The column that an assignment names.
    fn column(&self, name: &ColumnRef) -> Result<usize> {
        let unknown = || errors::unknown_column(&name.to_string(), "field list");
        if let Some(table) = &name.table
            && !self.fields.first().is_some_and(|field| same_name(table, &field.table))
        {
            return Err(unknown());
        }
        self.fields.iter().position(|field| same_name(&field.name, &name.column)).ok_or_else(unknown)
    }

    /// Positions of the columns that an INSERT names, or of all visible ones. `empty`: it gives no values.
    fn columns(&self, names: Option<&[ColumnRef]>, empty: bool) -> Result<Vec<usize>> {
        let Some(names) = names else { return Ok(if empty { Vec::new() } else { self.visible.clone() }) };
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let column = self.column(name)?;
            if columns.contains(&column) {
                return Err(MySqlError::with_message(1110, format!("Column '{}' specified twice", name.column)));
            }
            columns.push(column);
        }
        Ok(columns)
    }
}

/// The query with all columns of its FROM behind its own; `None` where its rows are not rows of FROM.
fn with_from(query: &ast::Query) -> Option<ast::Query> {
    let mut wide = query.clone();
    let ast::QueryBody::Select(select) = &mut wide.body else { return None };
    if select.distinct || select.from.is_empty() || !select.group_by.is_empty() {
        return None;
    }
    select.items.push(ast::SelectItem::Star { at: 0 });
    Some(wide)
}

/// DEFAULT(column) for that column. Unlike a bare DEFAULT it demands one in any mode.
fn own_default(column: &ColumnDef) -> Result<AssignedValue> {
    if column.lacks_default() { Err(highkey_types::errors::no_default_for_field(&column.name)) } else { Ok(AssignedValue::Default) }
}

fn count_mismatch(row: usize) -> MySqlError {
    MySqlError::with_message(1136, format!("Column count doesn't match value count at row {row}"))
}

/// A YEAR takes a column's date or time of day by its number, and not by the year of its date.
fn is_number_to(from: &ColumnType, to: &ColumnType) -> bool {
    from.is_temporal() && to.kind == TypeKind::Year
}

/// A FLOAT as the double whose digits a string takes.
fn coerce_float(value: Expr) -> Expr {
    if value.ty.ty.kind != TypeKind::Float {
        return value;
    }
    let ty = ExprType::double(value.ty.nullable);
    coerce(value, &ty)
}
