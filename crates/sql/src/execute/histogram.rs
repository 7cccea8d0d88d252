//! ANALYZE TABLE … UPDATE HISTOGRAM and DROP HISTOGRAM.

use std::collections::BTreeMap;

use highkey_table::{Histogram, Table};
use highkey_types::{TypeKind, Value, errors};

use super::{Failure, Outcome};
use crate::parse::ast::HistogramChange;
use crate::session::{ResultSink, Session, error};
use crate::show::Answer;

/// Without WITH n BUCKETS.
const DEFAULT_BUCKETS: u64 = 100;
const MAX_BUCKETS: u64 = 1024;

/// What became of a column: whether that is an error, and the words.
type Said = (bool, String);

impl Session {
    pub(crate) async fn histogram(&mut self, change: &HistogramChange, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let HistogramChange { tables, columns, update, buckets, local } = change;
        let update = *update;
        for (i, name) in tables.iter().enumerate() {
            let twice = tables[..i].iter().any(|other| other.name == name.name && other.schema == name.schema);
            if twice {
                return Err(errors::nonuniq_table(&name.name).into());
            }
        }
        for (i, name) in columns.iter().enumerate() {
            if columns[..i].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(error::dup_fieldname(name).into());
            }
        }
        let buckets = buckets.unwrap_or(DEFAULT_BUCKETS);
        if !(1..=MAX_BUCKETS).contains(&buckets) {
            return Err(errors::data_out_of_range("Number of buckets", "ANALYZE TABLE").into());
        }
        let (mut rows, mut done) = (Vec::new(), false);
        let mut line = |table: &str, error: bool, text: &str| {
            rows.push(vec![Value::text(table), Value::text("histogram"), Value::text(if error { "Error" } else { "status" }), Value::text(text)]);
        };
        match &tables[..] {
            [name] => {
                let (schema, name) = self.table_name(name)?;
                let shown = format!("{schema}.{name}");
                match self.state.base_table(&schema, &name) {
                    Ok(table) if table.is_temporary() && update => line(&shown, true, "Cannot create histogram statistics for a temporary table."),
                    Ok(table) => {
                        let memory = self.state.variables.u64("histogram_generation_max_mem_size");
                        let said = self
                            .with_own_view(&table, |table, txn| {
                                let (chosen, mut said) = choose(table, columns, update);
                                let changes: Vec<(usize, Option<Histogram>)> = if update {
                                    let made = table.make_histograms(txn, &chosen, buckets as u32, memory)?;
                                    chosen.iter().copied().zip(made.into_iter().map(Some)).collect()
                                } else {
                                    chosen.iter().map(|&column| (column, None)).collect()
                                };
                                table.store_histograms(changes)?;
                                for column in chosen {
                                    let name = &table.columns()[column].name;
                                    let done = if update { "created" } else { "removed" };
                                    said.insert(name.to_string(), (false, format!("Histogram statistics {done} for column '{name}'.")));
                                }
                                Ok(said)
                            })
                            .await?;
                        said.values().for_each(|(error, text)| line(&shown, *error, text));
                        done = true;
                    }
                    Err(e) => line(&shown, true, &format!("{}.", e.message)),
                }
            }
            _ => line("", true, "Only one table can be specified while modifying histogram statistics."),
        }
        let outcome = self.send(Answer::new("Table s128;Op s10;Msg_type s10;Msg_text S", rows), false, sink).await?;
        if done && !local {
            self.log_maintenance().await?;
        }
        Ok(outcome)
    }
}

/// The columns that can be done, and by name what is wrong with the others.
fn choose(table: &Table, columns: &[String], update: bool) -> (Vec<usize>, BTreeMap<String, Said>) {
    let def = table.def();
    let mut said = BTreeMap::new();
    let mut chosen = Vec::new();
    for name in columns {
        let column = def.column(name);
        let shown = column.map_or(name.as_str(), |c| &def.columns[c].name);
        let wrong = match column {
            Some(column) if !update => table.histogram(column).is_none().then(|| no_histogram(shown)),
            None if !update => Some(no_histogram(shown)),
            None => Some(format!("The column '{shown}' does not exist.")),
            Some(column) if def.is_unique_alone(column) => Some(format!("The column '{shown}' is covered by a single-part unique index.")),
            Some(column) => {
                (def.columns[column].ty.kind == TypeKind::Json || def.columns[column].ty.is_geometry()).then(|| format!("The column '{shown}' has an unsupported data type."))
            }
        };
        match (wrong, column) {
            (None, Some(column)) => chosen.push(column),
            (wrong, _) => {
                said.insert(shown.to_owned(), (true, wrong.unwrap_or_default()));
            }
        }
    }
    (chosen, said)
}

fn no_histogram(column: &str) -> String {
    format!("No histogram statistics found for column '{column}'.")
}
