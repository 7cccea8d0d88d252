//! XA statements, and BINLOG.

use highkey_table::Xid;

use super::ast::*;
use super::lexer::Tok;
use super::parser::{Parser, Result};

impl Parser<'_> {
    /// Behind XA.
    pub(super) fn xa(&mut self) -> Result<Statement> {
        let words = ["START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"];
        let Some(word) = self.any_kw(&words) else { return self.fail() };
        if word == "RECOVER" {
            let convert = self.kw("CONVERT");
            if convert {
                self.expect_kw("XID")?;
            }
            return Ok(Statement::Xa(XaStatement::Recover { convert }));
        }
        let xid = self.xid()?;
        Ok(Statement::Xa(match word {
            "END" => {
                let suspend = self.kw("SUSPEND");
                if suspend && self.kw("FOR") {
                    self.expect_kw("MIGRATE")?;
                }
                XaStatement::End { xid, suspend }
            }
            "PREPARE" => XaStatement::Prepare(xid),
            "COMMIT" => {
                let one_phase = self.kw("ONE");
                if one_phase {
                    self.expect_kw("PHASE")?;
                }
                XaStatement::Commit { xid, one_phase }
            }
            "ROLLBACK" => XaStatement::Rollback(xid),
            _ => {
                let how = match self.any_kw(&["JOIN", "RESUME"]) {
                    Some("JOIN") => XaStart::Join,
                    Some(_) => XaStart::Resume,
                    None => XaStart::New,
                };
                XaStatement::Start { xid, how }
            }
        }))
    }

    /// BINLOG 'text', or of user variables, as MariaDB's programs write it.
    pub(super) fn binlog(&mut self) -> Result<Statement> {
        self.advance();
        if let Tok::Str { .. } = self.peek() {
            return Ok(Statement::Binlog(BinlogText::Literal(self.string()?)));
        }
        let names = self.list(|p| match p.peek().clone() {
            Tok::UserVar(name) => {
                p.advance();
                Ok(name)
            }
            _ => p.fail(),
        })?;
        if names.len() > 2 { self.fail() } else { Ok(Statement::Binlog(BinlogText::Variables(names))) }
    }

    /// `gtrid[, bqual[, format]]`.
    fn xid(&mut self) -> Result<Xid> {
        let gtrid = self.xid_part()?;
        let mut xid = Xid { format: 1, gtrid, bqual: Vec::new() };
        if self.sym(",") {
            xid.bqual = self.xid_part()?;
            if self.sym(",") {
                xid.format = match self.peek().clone() {
                    Tok::Int(n) => i64::try_from(n).or_else(|_| self.fail())?,
                    Tok::Hex(bytes) if bytes.len() < 8 => bytes.iter().fold(0, |n, byte| n << 8 | i64::from(*byte)),
                    _ => return self.fail(),
                };
                self.advance();
            }
        }
        // MySQL finds it out when it has read the name.
        if xid.gtrid.len().max(xid.bqual.len()) > Xid::PART_LEN_MAX {
            return self.fail();
        }
        Ok(xid)
    }

    fn xid_part(&mut self) -> Result<Vec<u8>> {
        let part = match self.peek() {
            Tok::Str { value, .. } => value.as_bytes().to_vec(),
            Tok::Hex(bytes) | Tok::Bit(bytes) => bytes.clone(),
            _ => return self.fail(),
        };
        self.advance();
        Ok(part)
    }
}
