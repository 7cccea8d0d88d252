//! LOAD DATA [LOCAL] INFILE: blocks of lines made into rows by several threads, rows into the table in bulk.

mod blocks;
mod lines;

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highkey_table::{ColumnDef, Default as ColumnDefault, EncodedRows, OnDuplicate, Stage};
use highkey_types::{Charset, Collation, ColumnType, MySqlError, Str, TextRowEncoder, TypeKind, Value, errors};

use self::blocks::{BLOCK_BYTES, BlockCutter, BlockPlan, Converted, can_cut, convert};
use self::lines::{FieldText, LineParser};
use super::inserter::{BULK_CHUNK_BYTES, Inserter};
use super::query::BoundTables;
use super::subqueries::has_correlated_subquery;
use super::{Failure, Outcome};
use crate::bind::{self, AssignedValue, BoundLoad, BoundLoadTarget};
use crate::expr;
use crate::parse::ast::{self, LoadDuplicates};
use crate::session::{LocalInfile, ProcessEntry, ResultSink, Session, error, error::err, resolve_file};
use crate::variables::SqlModes;

/// Where the file's bytes come from.
enum Source<'a> {
    File(std::fs::File),
    Client(ClientFile<'a>),
}

/// A file that the client sends.
struct ClientFile<'a> {
    reader: Box<dyn LocalInfile + 'a>,
    /// How long it may say nothing (`net_read_timeout`).
    patience: Duration,
    /// It has said nothing for so long: it is in the middle of its file, where it would take no answer.
    silent: bool,
}

impl ClientFile<'_> {
    /// A client that is killed is not waited for, nor is one that has gone without a word.
    async fn next_chunk(&mut self, process: &ProcessEntry) -> Result<Option<Bytes>, MySqlError> {
        tokio::select! {
            biased;
            chunk = self.reader.next_chunk() => chunk,
            () = process.connection_killed() => Err(errors::query_interrupted()),
            () = tokio::time::sleep(self.patience) => {
                self.silent = true;
                Err(errors::net_read_interrupted())
            }
        }
    }
}

impl Source<'_> {
    async fn next_chunk(&mut self, process: &ProcessEntry) -> Result<Option<Bytes>, MySqlError> {
        let chunk = self.read(process).await?;
        process.progress().add(chunk.as_ref().map_or(0, |c| c.len() as u64));
        Ok(chunk)
    }

    async fn read(&mut self, process: &ProcessEntry) -> Result<Option<Bytes>, MySqlError> {
        match self {
            Source::File(file) => {
                let mut chunk = vec![0; 1 << 18];
                let n = file.read(&mut chunk).map_err(|e| err(2, format!("File read error: {e}")))?;
                chunk.truncate(n);
                Ok((n > 0).then(|| Bytes::from(chunk)))
            }
            Source::Client(file) => file.next_chunk(process).await,
        }
    }

    /// A client goes on sending after an error: the rest is read and dropped. Fails if it does not.
    async fn drain(&mut self, process: &ProcessEntry) -> io::Result<()> {
        let Source::Client(file) = self else { return Ok(()) };
        while !file.silent && matches!(file.next_chunk(process).await, Ok(Some(_))) {}
        if file.silent { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// How lines become rows without the session. None where a row's values are not those of its fields and constants alone.
fn block_plan(bound: &BoundLoad, charset: Charset, inserter: &Inserter) -> Option<BlockPlan> {
    let columns = bound.targets.iter().map(|t| if let BoundLoadTarget::Column(c) = t { Some(*c) } else { None });
    let columns: Vec<usize> = columns.collect::<Option<_>>()?;
    if !bound.assignments.is_empty() {
        return None;
    }
    let constants = inserter.constants()?;
    let types: Vec<_> = inserter.target.columns().iter().map(|c| c.ty.clone()).collect();
    let nullable: Vec<_> = inserter.target.columns().iter().map(|c| c.nullable).collect();
    let auto_column = bound.table.auto_increment_column();
    if auto_column.is_some_and(|column| !columns.contains(&column)) {
        return None;
    }
    let encoder = TextRowEncoder::new(&types, &nullable, &columns, &constants, charset)?;
    Some(BlockPlan { format: bound.format.clone(), encoder, table: bound.table.clone(), fields: columns.len(), auto_column })
}

/// Error 1300: a field whose bytes are no text in the file's character set; `valid` are those before the first bad one.
fn invalid_text(charset: Charset, valid: &[u8]) -> MySqlError {
    err(1300, format!("Invalid {} character string: '{}'", charset.name(), String::from_utf8_lossy(valid)))
}

fn null_supplied(def: &ColumnDef, row: u64) -> MySqlError {
    err(1263, format!("Column set to default value; NULL supplied to NOT NULL column '{}' at row {row}", def.name))
}

/// The last character is cut off, which a column of such characters finds itself. One of another character set than the file's may find another character.
fn is_cut_off(bytes: &[u8], charset: Charset, ty: &ColumnType) -> bool {
    let finds_it = charset == ty.charset() || charset.is_utf8() && ty.charset().is_utf8();
    finds_it && ty.is_text() && ty.charset().max_bytes() > 1 && std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}

/// Where a line has too few fields, what is not NULL by default becomes zero or nothing at all, whatever its default is.
fn is_null_unless_given(def: &ColumnDef) -> bool {
    def.nullable && matches!(def.default, ColumnDefault::None | ColumnDefault::Dropped | ColumnDefault::Literal(Value::Null))
}

/// IGNORE may leave out rows for other reasons than the numbers that they are given (another unique key, no parent): the next rows are given these.
fn gives_numbers_again(bound: &BoundLoad, inserter: &Inserter) -> bool {
    let table = &bound.table;
    let given = table.auto_increment_column().is_none_or(|column| inserter.given_columns().contains(&column));
    let meets_others = || (0..table.indexes().len()).any(|index| table.indexes()[index].is_unique() && !table.begins_with_number(index));
    inserter.ignore && !given && (meets_others() || !table.def().foreign_keys.is_empty())
}

/// The columns among the targets.
fn columns_of(bound: &BoundLoad) -> impl Iterator<Item = usize> {
    bound.targets.iter().filter_map(|t| if let BoundLoadTarget::Column(c) = t { Some(*c) } else { None })
}

impl Session {
    pub(crate) async fn load_data(&mut self, ast: &ast::LoadData, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if ast.local && (!self.state.instance.globals().bool("local_infile") || !self.state.client.flags.local_files) {
            return Err(err(3948, "Loading local data is disabled; this must be enabled on both the client and server sides").into());
        }
        loop {
            let bound = bind::bind_load(ast, &self.state)?;
            let mut tables = BoundTables::one(&bound.table, &bound.views);
            bound.assignments.iter().filter_map(|(_, v)| v.expr()).for_each(|e| tables.collect_expr(e));
            if self.open_tables(&tables).await? {
                self.note_triggers([&bound.table], || tables);
                return self.run_load(bound, sink).await;
            }
        }
    }

    async fn run_load(&mut self, mut bound: BoundLoad, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        self.begin_write(bound.table.is_temporary())?;
        self.prepare_cascades(&bound.table);
        let mut assignments = std::mem::take(&mut bound.assignments);
        self.resolve_all(assignments.iter_mut().filter_map(|(_, v)| v.expr_mut()).collect()).await?;
        if assignments.iter().filter_map(|(_, v)| v.expr()).any(has_correlated_subquery) {
            return Err(error::not_supported("correlated subqueries in LOAD DATA SET").into());
        }
        bound.assignments = assignments;
        bound.format = bound.format.in_mode(self.state.mode(SqlModes::NO_BACKSLASH_ESCAPES));
        let charset = match &bound.charset {
            Some(name) => Charset::by_name(name).ok_or_else(|| error::unknown_character_set(name))?,
            None => Charset::by_name(&self.state.variables.text("character_set_database")).unwrap_or(Charset::Utf8mb4),
        };
        if charset.min_bytes() > 1 {
            return Err(error::not_supported(&format!("LOAD DATA of a file in {}", charset.name())).into());
        }
        let progress = self.state.process.progress();
        progress.enter(Stage::ReadingFile, 0);
        let mut source = if bound.local {
            let patience = self.net_read_timeout();
            Source::Client(ClientFile { reader: sink.local_infile(&bound.path).await?, patience, silent: false })
        } else {
            let path = resolve_file(&self.state, &bound.path)?;
            let file = std::fs::File::open(&path).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => err(13, format!("Can't get stat of '{}' (OS errno 2 - No such file or directory)", path.display())),
                _ => err(29, format!("File '{}' not found (OS errno {} - {e})", path.display(), e.raw_os_error().unwrap_or(0))),
            })?;
            progress.enter(Stage::ReadingFile, file.metadata().map_or(0, |m| m.len()));
            Source::File(file)
        };
        let loaded = self.load_rows(&bound, charset, &mut source).await;
        if loaded.is_err() {
            source.drain(&self.state.process).await?;
        }
        loaded
    }

    async fn load_rows(&mut self, bound: &BoundLoad, charset: Charset, source: &mut Source<'_>) -> Result<Outcome, Failure> {
        // A local file that cannot be refused half way is loaded as if IGNORE had been said, as in MySQL.
        let ignore = bound.duplicates == LoadDuplicates::Ignore || (bound.local && bound.duplicates != LoadDuplicates::Replace);
        let mode = match bound.duplicates {
            LoadDuplicates::Replace => OnDuplicate::Replace,
            _ if ignore => OnDuplicate::Ignore,
            _ => OnDuplicate::Error,
        };
        self.state.begin_changes(ignore);
        let mut columns: Vec<usize> = columns_of(bound).collect();
        for (column, _) in &bound.assignments {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        let mut inserter = Inserter::new(&mut self.state, &bound.table, &columns, ignore, mode)?;
        inserter.target.check = bound.check.clone();
        inserter.target.triggers = self.table_triggers(&bound.table);
        for (column, value) in &bound.assignments {
            inserter.target.check_generated(*column, value)?;
        }
        inserter.open_ended = true;
        self.lock_auto_increment(&mut inserter).await?;
        if !inserter.by_row && !gives_numbers_again(bound, &inserter) {
            self.begin_bulk(&mut inserter)?;
        }
        match block_plan(bound, charset, &inserter).filter(|_| !inserter.by_row) {
            Some(plan) if can_cut(&bound.format, charset) => self.load_blocks(bound, charset, source, &mut inserter, plan).await?,
            plan => self.load_lines(bound, charset, source, &mut inserter, plan).await?,
        }
        self.state.check_strict()?;
        self.finish_bulk(&mut inserter).await?;
        let warnings = self.state.diagnostics.count();
        let (records, skipped) = (inserter.row, inserter.ignored);
        let outcome = inserter.outcome(&mut self.state, true);
        Ok(match outcome {
            Outcome::Done { affected, .. } => {
                let info = format!("Records: {records}  Deleted: {}  Skipped: {skipped}  Warnings: {warnings}", inserter.replaced);
                Outcome::Done { affected, last_insert_id: 0, info }
            }
            other => other,
        })
    }

    /// Blocks of whole lines, several at a time, into the table in their order.
    async fn load_blocks(
        &mut self,
        bound: &BoundLoad,
        charset: Charset,
        source: &mut Source<'_>,
        inserter: &mut Inserter,
        plan: BlockPlan,
    ) -> Result<(), Failure> {
        let plan = Arc::new(plan);
        let ahead = std::thread::available_parallelism().map_or(2, |n| n.get()) + 1;
        let mut cutter = BlockCutter::new(&bound.format, bound.ignore_lines);
        let mut working = VecDeque::with_capacity(ahead);
        let process = self.state.process.clone();
        let too_long = loop {
            let chunk = source.next_chunk(&process).await?;
            let last = chunk.is_none();
            process.check()?;
            if let Some(chunk) = chunk {
                cutter.feed(&chunk);
            }
            while let Some(block) = cutter.next(last) {
                let (shared, waits) = (plan.clone(), self.waits.clone());
                working.push_back(tokio::task::spawn_blocking(move || waits.work(|| convert(&shared, &block))));
                if working.len() >= ahead {
                    let Some(next) = working.pop_front() else { break };
                    self.take_block(bound, charset, inserter, &plan, next.await).await?;
                }
            }
            if last {
                break None;
            }
            if cutter.waiting() > self.longest_line() {
                break Some(errors::net_packet_too_large());
            }
            tokio::task::yield_now().await;
        };
        for next in working {
            self.take_block(bound, charset, inserter, &plan, next.await).await?;
        }
        match too_long {
            Some(error) => Err(Box::pin(self.fail_behind(inserter, &mut Vec::new(), error)).await),
            None => Ok(()),
        }
    }

    async fn take_block(
        &mut self,
        bound: &BoundLoad,
        charset: Charset,
        inserter: &mut Inserter,
        plan: &BlockPlan,
        converted: Result<Converted, tokio::task::JoinError>,
    ) -> Result<(), Failure> {
        self.state.process.check()?;
        let prepared = match converted.map_err(|e| error::internal(&format!("a LOAD DATA worker: {e}")))? {
            Converted::Prepared(count, prepared, greatest) => {
                inserter.row += count as u64;
                inserter.pass(greatest)?;
                prepared
            }
            Converted::Mixed(encoded, declined) => {
                let mut rows = EncodedRows::new();
                let mut taken = 0;
                let mut copy_until = |rows: &mut EncodedRows, inserter: &mut Inserter, until: usize| {
                    for i in taken..until {
                        rows.push_with(|out| out.extend_from_slice(encoded.row(i)));
                    }
                    inserter.row += (until - taken) as u64;
                    inserter.pass(plan.greatest_given(&encoded, taken..until))?;
                    taken = until;
                    Ok::<(), MySqlError>(())
                };
                for mut line in declined {
                    copy_until(&mut rows, inserter, line.at)?;
                    self.convert_line(bound, charset, inserter, &mut line.fields, &mut rows).await?;
                }
                copy_until(&mut rows, inserter, encoded.len())?;
                bound.table.prepare_rows(rows)
            }
        };
        self.add_prepared(inserter, prepared).await
    }

    /// Line by line: for files that cannot be cut into blocks, and for tables that compute something of each row.
    async fn load_lines(
        &mut self,
        bound: &BoundLoad,
        charset: Charset,
        source: &mut Source<'_>,
        inserter: &mut Inserter,
        plan: Option<BlockPlan>,
    ) -> Result<(), Failure> {
        let mut parser = if bound.format.is_fixed() {
            let widths = columns_of(bound).map(|c| inserter.target.columns()[c].ty.fixed_width() as usize).collect();
            LineParser::fixed(bound.format.clone(), charset, widths, bound.ignore_lines)
        } else {
            LineParser::new(bound.format.clone(), charset, bound.ignore_lines)
        };
        parser = parser.with_longest(self.longest_line());
        let mut rows = EncodedRows::new();
        let mut fields = Vec::new();
        let process = self.state.process.clone();
        loop {
            let chunk = source.next_chunk(&process).await?;
            let last = chunk.is_none();
            process.check()?;
            if let Some(chunk) = chunk {
                parser.feed(&chunk);
            }
            while parser.next_line(last, &mut fields) {
                parser.cut_unterminated(&mut fields, bound.targets.len());
                if let Some(plan) = plan.as_ref().filter(|plan| plan.encode_texts(&fields, &mut rows)) {
                    inserter.row += 1;
                    inserter.pass(plan.greatest_given(&rows, rows.len() - 1..rows.len()))?;
                } else if inserter.by_row {
                    let row = self.load_row(bound, charset, inserter, &mut fields)?;
                    Box::pin(self.insert_with_triggers(inserter, row, false)).await?;
                } else {
                    self.convert_line(bound, charset, inserter, &mut fields, &mut rows).await?;
                }
                if rows.byte_len() >= BULK_CHUNK_BYTES {
                    self.state.process.check()?;
                    self.add_prepared(inserter, bound.table.prepare_rows(std::mem::take(&mut rows))).await?;
                }
            }
            if last {
                break;
            }
            if parser.waiting() > self.longest_line() {
                return Err(Box::pin(self.fail_behind_lines(bound, inserter, &mut rows, errors::net_packet_too_large())).await);
            }
            tokio::task::yield_now().await;
        }
        self.add_prepared(inserter, bound.table.prepare_rows(rows)).await
    }

    /// Error 1153 for a line of more bytes without an end: all of it is kept in memory. Most often the file has another terminator.
    fn longest_line(&self) -> usize {
        (self.state.config.max_allowed_packet as usize).saturating_add(BLOCK_BYTES)
    }

    /// One line the long way: converted with warnings and errors, numbered, encoded.
    async fn convert_line(
        &mut self,
        bound: &BoundLoad,
        charset: Charset,
        inserter: &mut Inserter,
        fields: &mut Vec<FieldText>,
        rows: &mut EncodedRows,
    ) -> Result<(), Failure> {
        let row = match self.finished_row(bound, charset, inserter, fields) {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(()),
            Err(e) => return Err(Box::pin(self.fail_behind_lines(bound, inserter, rows, e)).await),
        };
        if !inserter.is_in_bulk() {
            return Box::pin(self.write_rows(inserter, &mut vec![row], false)).await;
        }
        if inserter.may_take_last(&row) {
            // Behind the rows before it, and before those behind it.
            self.add_prepared(inserter, bound.table.prepare_rows(std::mem::take(rows))).await?;
            Box::pin(self.write_rows(inserter, &mut vec![row], false)).await?;
            return self.flush_bulk(inserter, 0).await;
        }
        let mut row = [row];
        let generated = match inserter.number(&mut self.state, &mut row, false) {
            Ok(generated) => generated,
            Err(e) => return Err(Box::pin(self.fail_behind_lines(bound, inserter, rows, e)).await),
        };
        inserter.note_generated(&generated, |_| false);
        rows.push_with(|out| bound.table.layout().encode(&row[0], out));
        Ok(())
    }

    /// As `fail_behind`: `rows` are of lines before the one that no row is made of.
    async fn fail_behind_lines(&mut self, bound: &BoundLoad, inserter: &mut Inserter, rows: &mut EncodedRows, error: MySqlError) -> Failure {
        let rows = bound.table.prepare_rows(std::mem::take(rows));
        match self.add_prepared(inserter, rows).await {
            Ok(()) => self.fail_behind(inserter, &mut Vec::new(), error).await,
            Err(failure) => failure,
        }
    }

    /// One line's fields as a row; none if it is left out (IGNORE).
    fn finished_row(
        &mut self,
        bound: &BoundLoad,
        charset: Charset,
        inserter: &mut Inserter,
        fields: &mut Vec<FieldText>,
    ) -> Result<Option<Vec<Value>>, MySqlError> {
        let mut row = self.load_row(bound, charset, inserter, fields)?;
        let fits = inserter.finish_row(&mut self.state, &mut row)?;
        self.state.check_strict()?;
        Ok(fits.then_some(row))
    }

    /// One line's fields as a row, before what is asked of rows.
    fn load_row(&mut self, bound: &BoundLoad, charset: Charset, inserter: &mut Inserter, fields: &mut Vec<FieldText>) -> Result<Vec<Value>, MySqlError> {
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        let ignore = inserter.ignore;
        let number = inserter.row;
        let strict = self.state.strict() && !ignore;
        for (i, target) in bound.targets.iter().enumerate() {
            let field = fields.get_mut(i).map(std::mem::take);
            match target {
                BoundLoadTarget::Variable(name) => {
                    let value = match field {
                        Some(FieldText::Text(bytes)) if charset == Charset::Binary => Value::Bytes(bytes),
                        Some(FieldText::Text(bytes)) => match charset.decode(&bytes) {
                            Ok(text) => Value::Text(Str::from(&*text)),
                            Err(at) => return Err(invalid_text(charset, &bytes[..at])),
                        },
                        _ => Value::Null,
                    };
                    self.state.user_vars.insert(name.clone(), (value, Collation::default_of(charset)));
                }
                BoundLoadTarget::Column(column) => {
                    let column = *column;
                    let def = &inserter.target.columns()[column];
                    let value = match field {
                        None => {
                            let error = err(1261, format!("Row {number} doesn't contain data for all columns"));
                            if strict {
                                return Err(error);
                            }
                            self.state.push_ignored(error);
                            if def.ty.is_geometry() && !def.nullable && def.generated.is_none() && !inserter.before {
                                return Err(null_supplied(def, number));
                            }
                            row[column] = if bound.format.is_fixed() {
                                let default = inserter.target.default(&mut self.state, column, &row, true, number)?;
                                // MySQL has cleared the NULL flag by then.
                                if default == Value::Null { super::target::implicit_default(&def.ty) } else { default }
                            } else {
                                match &def.ty.kind {
                                    _ if def.auto_increment || def.generated.is_some() || is_null_unless_given(def) => Value::Null,
                                    TypeKind::Timestamp(fsp) if !def.nullable => inserter.target.now(&mut self.state, column, *fsp, true, number)?,
                                    TypeKind::Enum(_) => Value::Enum(0, "".into()),
                                    _ => super::target::implicit_default(&def.ty),
                                }
                            };
                            continue;
                        }
                        Some(FieldText::Null) if !def.nullable && !def.auto_increment && !inserter.before => {
                            let error = null_supplied(def, number);
                            if strict || def.ty.is_geometry() {
                                return Err(error);
                            }
                            self.state.push_ignored(error);
                            row[column] = super::target::implicit_default(&def.ty);
                            continue;
                        }
                        Some(FieldText::Null) => Value::Null,
                        Some(FieldText::Text(bytes)) if def.ty.is_binary() || matches!(def.ty.kind, highkey_types::TypeKind::Bit(_)) => Value::Bytes(bytes),
                        // Bytes of no character set are read in the column's.
                        Some(FieldText::Text(bytes)) if charset == Charset::Binary && def.ty.is_text() => Value::Bytes(bytes),
                        Some(FieldText::Text(bytes)) => match charset.decode(&bytes) {
                            Ok(text) => Value::Text(Str::from(&*text)),
                            Err(_) if charset == Charset::Binary || is_cut_off(&bytes, charset, &def.ty) => Value::Bytes(bytes),
                            Err(at) => return Err(invalid_text(charset, &bytes[..at])),
                        },
                    };
                    inserter.assign(&mut self.state, &mut row, column, value)?;
                }
            }
        }
        // A terminator behind the last field is no further field.
        let more = fields.len() - fields.len().min(bound.targets.len());
        if more > 1 || more == 1 && fields.last() != Some(&FieldText::Text(Vec::new())) {
            let error = err(1262, format!("Row {number} was truncated; it contained more data than there were input columns"));
            if strict {
                return Err(error);
            }
            self.state.push_ignored(error);
        }
        for (column, value) in &bound.assignments {
            row[*column] = match value {
                AssignedValue::Default => inserter.target.default(&mut self.state, *column, &row, ignore, number)?,
                AssignedValue::Expr(expr) => {
                    let seen = inserter.target.session_row(&row, &self.state.config.time_zone);
                    let value = expr::eval(expr, &seen, &mut self.state)?;
                    inserter.target.store(&mut self.state, *column, value, ignore, number)?
                }
            };
        }
        Ok(row)
    }
}

