//! PARTITION BY, and what ALTER TABLE does with partitions.

use highkey_types::{MySqlError, errors};

use super::ast::*;
use super::parser::{Parser, Result, unsupported};

impl Parser<'_> {
    /// PARTITION BY …
    pub(super) fn partition_by(&mut self) -> Result<PartitionBy> {
        self.expect_kw("PARTITION")?;
        self.expect_kw("BY")?;
        let linear = self.kw("LINEAR");
        let method = match self.any_kw(&["RANGE", "LIST", "HASH", "KEY"]) {
            Some("HASH") => PartitionMethod::Hash { expr: self.partition_expr()?, linear },
            Some("KEY") => {
                let algorithm = if self.kw("ALGORITHM") {
                    self.expect_sym("=")?;
                    Some(self.integer()?)
                } else {
                    None
                };
                self.expect_sym("(")?;
                let columns = if self.is_sym(")") { Vec::new() } else { self.list(Self::ident)? };
                self.expect_sym(")")?;
                PartitionMethod::Key { columns, linear, algorithm }
            }
            Some(kind) if !linear => match (kind, self.kw("COLUMNS")) {
                ("RANGE", true) => PartitionMethod::RangeColumns(self.parenthesised_list(Self::ident)?),
                ("RANGE", false) => PartitionMethod::Range(self.partition_expr()?),
                (_, true) => PartitionMethod::ListColumns(self.parenthesised_list(Self::ident)?),
                (_, false) => PartitionMethod::List(self.partition_expr()?),
            },
            _ => return self.fail(),
        };
        let count = if self.kw("PARTITIONS") { Some(self.integer()?) } else { None };
        if self.is_kw("SUBPARTITION") {
            return unsupported("SUBPARTITION");
        }
        let start = self.start();
        let partitions = if self.is_sym("(") { Some(self.partition_defs()?) } else { None };
        if let (Some(count), Some(partitions)) = (count, &partitions)
            && count != partitions.len() as u64
        {
            return Err(self.error_at(start, "Wrong number of partitions defined, mismatch with previous setting"));
        }
        Ok(PartitionBy { method, count, partitions })
    }

    fn partition_expr(&mut self) -> Result<Expr> {
        Ok(self.expr_text()?.expr)
    }

    /// `(PARTITION p …, …)`
    fn partition_defs(&mut self) -> Result<Vec<PartitionDef>> {
        self.parenthesised_list(Self::partition_def)
    }

    fn partition_def(&mut self) -> Result<PartitionDef> {
        self.expect_kw("PARTITION")?;
        let mut def = PartitionDef { name: self.ident()?, values: PartitionValues::Unwritten, comment: None, engine: None };
        if self.kw("VALUES") {
            if self.kw("IN") {
                def.values = PartitionValues::In(self.parenthesised_list(|p| {
                    if p.is_sym("(") {
                        p.parenthesised_list(Self::list_value)
                    } else {
                        Ok(vec![p.list_value()?])
                    }
                })?);
            } else {
                self.expect_kw("LESS")?;
                self.expect_kw("THAN")?;
                def.values = if self.kw("MAXVALUE") { PartitionValues::LessThanMax } else { PartitionValues::LessThan(self.parenthesised_list(Self::partition_value)?) };
            }
        }
        loop {
            self.kw("STORAGE");
            if self.kw("ENGINE") {
                self.sym("=");
                def.engine = Some(self.name_or_string()?);
            } else if self.kw("COMMENT") {
                self.sym("=");
                def.comment = Some(self.string()?);
            } else if self.any_kw(&["MAX_ROWS", "MIN_ROWS", "NODEGROUP"]).is_some() {
                self.sym("=");
                self.integer()?;
            } else if self.kw("TABLESPACE") {
                self.sym("=");
                if !self.name_or_string()?.eq_ignore_ascii_case("innodb_file_per_table") {
                    return unsupported("TABLESPACE");
                }
            } else if self.is_any_kw(&["DATA", "INDEX"]) {
                return unsupported("DATA DIRECTORY");
            } else if self.is_sym("(") || self.is_kw("SUBPARTITION") {
                return unsupported("SUBPARTITION");
            } else {
                return Ok(def);
            }
        }
    }

    fn partition_value(&mut self) -> Result<PartitionValue> {
        if self.kw("MAXVALUE") {
            return Ok(PartitionValue::MaxValue);
        }
        let start = self.start();
        let expr = self.expr()?;
        Ok(PartitionValue::Expr(ExprText { expr, text: self.sql[start..self.previous_end()].to_string() }))
    }

    /// A value of VALUES IN, which is never MAXVALUE.
    fn list_value(&mut self) -> Result<PartitionValue> {
        if self.is_kw("MAXVALUE") {
            return Err(self.error_at(self.start(), "Cannot use MAXVALUE as value in VALUES IN"));
        }
        self.partition_value()
    }

    fn error_at(&self, start: usize, what: &str) -> MySqlError {
        let line = self.sql[..start].matches('\n').count() + 1;
        errors::parse_error(what, &self.sql[start..], line)
    }

    /// ADD, DROP, … of partitions, behind the word PARTITION. `None`: it is nothing of that kind.
    pub(super) fn partition_action(&mut self, word: &str) -> Result<Option<AlterAction>> {
        let action = match word {
            "PARTITION" => return Ok(Some(AlterAction::PartitionBy(Box::new(self.partition_by()?)))),
            "REMOVE" => {
                self.advance();
                self.expect_kw("PARTITIONING")?;
                return Ok(Some(AlterAction::RemovePartitioning));
            }
            "ADD" if self.is_kw_at(1, "PARTITION") => {
                self.into_partitions();
                match self.kw("PARTITIONS") {
                    true => PartitionAction::Add { count: Some(self.integer()?), partitions: Vec::new() },
                    false => PartitionAction::Add { count: None, partitions: self.partition_defs()? },
                }
            }
            "DROP" if self.is_kw_at(1, "PARTITION") => {
                self.into_partitions();
                PartitionAction::Drop(self.list(Self::ident)?)
            }
            "COALESCE" if self.is_kw_at(1, "PARTITION") => {
                self.into_partitions();
                PartitionAction::Coalesce(self.integer()?)
            }
            "REORGANIZE" if self.is_kw_at(1, "PARTITION") => {
                self.into_partitions();
                if self.at_end() {
                    return unsupported("REORGANIZE PARTITION without names");
                }
                let names = self.list(Self::ident)?;
                self.expect_kw("INTO")?;
                PartitionAction::Reorganize { names, into: self.partition_defs()? }
            }
            "EXCHANGE" if self.is_kw_at(1, "PARTITION") => {
                self.into_partitions();
                let partition = self.ident()?;
                self.expect_kw("WITH")?;
                self.expect_kw("TABLE")?;
                let table = self.object_name()?;
                let validate = !self.kws(&["WITHOUT", "VALIDATION"]);
                if validate {
                    self.kws(&["WITH", "VALIDATION"]);
                }
                PartitionAction::Exchange { partition, table, validate }
            }
            "TRUNCATE" | "REBUILD" | "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" if self.is_kw_at(1, "PARTITION") => {
                let local = self.into_partitions();
                let names = if self.kw("ALL") { None } else { Some(self.list(Self::ident)?) };
                match word {
                    "TRUNCATE" => PartitionAction::Truncate(names),
                    "REBUILD" => PartitionAction::Rebuild(names),
                    "ANALYZE" => PartitionAction::Maintain { what: "ANALYZE", names, local },
                    "CHECK" => PartitionAction::Maintain { what: "CHECK", names, local },
                    "OPTIMIZE" => PartitionAction::Maintain { what: "OPTIMIZE", names, local },
                    _ => PartitionAction::Maintain { what: "REPAIR", names, local },
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(AlterAction::Partitions(action)))
    }

    /// Past the verb, PARTITION and what says that replicas are not told.
    fn into_partitions(&mut self) -> bool {
        self.advance();
        self.advance();
        self.any_kw(&["NO_WRITE_TO_BINLOG", "LOCAL"]).is_some()
    }
}
