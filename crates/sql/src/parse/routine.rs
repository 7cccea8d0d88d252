//! Stored routines: definitions and bodies.
//!
//! A body becomes a list of steps while it is read: blocks, loops and branches are jumps in it. Names of variables are looked up where they stand, before
//! those of columns, as MySQL does it: what names one is a parameter of its statement.

mod condition;
mod flow;

use highkey_table::{DataAccess, RoutineKind, TriggerEvent, TriggerPlace, TriggerTime};
use highkey_types::errors;

use super::ast::*;
use super::event::begins_event;
use super::lexer::{Tok, without_versions};
use super::parser::{Parser, Result, hints_of, unsupported};

/// The routine that is being read.
#[derive(Default)]
pub(super) struct RoutineState {
    program: Program,
    /// The names of the blocks around the current place, outermost first.
    names: Vec<Names>,
    labels: Vec<Label>,
    /// The variables that the parameters of the current statement are.
    locals: Vec<usize>,
    /// It is a function.
    returns: bool,
    /// It is a trigger.
    trigger: Option<(TriggerEvent, TriggerTime)>,
}

/// What a block, or the body of a handler, declares.
#[derive(Default)]
struct Names {
    scope: usize,
    variables: Vec<(String, usize)>,
    conditions: Vec<(String, HandledCondition)>,
    cursors: Vec<(String, usize)>,
    /// It has declared handlers: what they are for.
    handled: Vec<HandledCondition>,
    /// Ends of EXIT handlers, which go on at the end of the block.
    exits: Vec<usize>,
}

struct Label {
    /// The body of a handler has one without a name, behind which no other is seen.
    barrier: bool,
    name: Option<String>,
    /// ITERATE goes on there.
    start: Option<usize>,
    /// Handlers and cursors that are there when it begins.
    handlers: usize,
    cursors: usize,
    /// LEAVEs, which go on at its end.
    leaves: Vec<usize>,
}

impl RoutineState {
    fn next(&self) -> usize {
        self.program.steps.len()
    }

    fn push(&mut self, instruction: Instruction) -> usize {
        let scope = self.names.last().map_or(0, |names| names.scope);
        self.program.steps.push(Step { instruction, scope });
        self.program.steps.len() - 1
    }

    /// A jump goes on at the next step.
    fn land(&mut self, jump: usize) {
        let next = self.next();
        match &mut self.program.steps[jump].instruction {
            Instruction::Jump(to) | Instruction::JumpUnless { to, .. } | Instruction::Declare { after: to, .. } => *to = next,
            Instruction::EndHandler { to } => *to = Some(next),
            _ => {}
        }
    }

    /// A CONTINUE handler goes on at the next step.
    fn resume_here(&mut self, steps: &[usize]) {
        let next = self.next();
        for step in steps {
            match &mut self.program.steps[*step].instruction {
                Instruction::JumpUnless { resume, .. } => *resume = next,
                Instruction::Set { resume, .. } => *resume = Some(next),
                _ => {}
            }
        }
    }

    fn open_scope(&mut self, of_handler: bool) {
        let parent = self.names.last().map(|names| names.scope);
        self.program.scopes.push(BlockScope { parent, of_handler, handlers: Vec::new() });
        self.names.push(Names { scope: self.program.scopes.len() - 1, ..Names::default() });
    }

    fn current(&mut self) -> &mut Names {
        self.names.last_mut().expect("a routine has a scope")
    }

    fn variable(&self, name: &str) -> Option<usize> {
        self.names.iter().rev().find_map(|names| find(&names.variables, name)).copied()
    }

    fn condition(&self, name: &str) -> Option<HandledCondition> {
        self.names.iter().rev().find_map(|names| find(&names.conditions, name)).copied()
    }

    fn cursor(&self, name: &str) -> Option<usize> {
        self.names.iter().rev().find_map(|names| find(&names.cursors, name)).copied()
    }

    /// The labels that can be named here, innermost first.
    fn labels(&self) -> impl Iterator<Item = (usize, &Label)> {
        self.labels.iter().enumerate().rev().take_while(|(_, label)| !label.barrier)
    }

    fn label(&self, name: &str, loops_only: bool) -> Option<usize> {
        let named = |label: &Label| label.name.as_deref().is_some_and(|known| same(known, name)) && (label.start.is_some() || !loops_only);
        self.labels().find(|(_, label)| named(label)).map(|(at, _)| at)
    }

    /// What has been declared since goes.
    fn leave(&mut self, handlers: usize, cursors: usize) {
        let (handlers, cursors) = (handlers..self.program.handlers.len(), cursors..self.program.cursors.len());
        if !handlers.is_empty() || !cursors.is_empty() {
            self.push(Instruction::Leave { handlers, cursors });
        }
    }

    fn declare_variable(&mut self, name: String, ty: Option<DataType>) -> usize {
        self.program.variables.push(Variable { name: name.clone(), ty });
        let number = self.program.variables.len() - 1;
        self.current().variables.push((name, number));
        number
    }
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn find<'n, T>(names: &'n [(String, T)], name: &str) -> Option<&'n T> {
    names.iter().find(|(known, _)| same(known, name)).map(|(_, what)| what)
}

/// Whether a statement is a definition whose body may hold semicolons. `is`: its token of that number is the keyword.
pub(super) fn begins_routine(is: impl Fn(usize, &str) -> bool) -> bool {
    let is_kind = |at: usize| ["PROCEDURE", "FUNCTION", "TRIGGER"].into_iter().any(|kind| is(at, kind));
    // `DEFINER = user@host`, `DEFINER = CURRENT_USER()`.
    (is(0, "CREATE") && (is_kind(1) || (is(1, "DEFINER") && (3..10).any(is_kind)))) || begins_event(is)
}

/// What a function may not do in MySQL: errors 1336, 1415 and 1422. What it may not do here is error 1235. True: it changes tables, or may.
fn check_in_function(statement: &Statement) -> Result<bool> {
    use Statement as S;
    match statement {
        S::Do(_) | S::Signal(_) | S::GetDiagnostics(_) => Ok(false),
        S::Insert(_) | S::Update(_) | S::Delete(_) | S::Call(_) => Ok(true),
        S::Query(query) if query.into.is_none() => Err(errors::sp_no_retset("function")),
        S::Show(_) | S::Describe { .. } | S::Explain { .. } | S::ExplainConnection { .. } | S::Maintain { .. } | S::Histogram(_) => Err(errors::sp_no_retset("function")),
        S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => Err(errors::stmt_not_allowed_in_sf_or_trg("Dynamic SQL")),
        S::Flush(_) => Err(errors::stmt_not_allowed_in_sf_or_trg("FLUSH")),
        S::CreateTable(create) if create.temporary => unsupported("temporary tables of stored functions"),
        S::DropTable(drop) if drop.temporary => unsupported("temporary tables of stored functions"),
        S::CreateTable(_)
        | S::DropTable(_)
        | S::CreateView(_)
        | S::AlterTable(_)
        | S::RenameTable(_)
        | S::TruncateTable(_)
        | S::CreateIndex(_)
        | S::DropIndex { .. }
        | S::CreateDatabase { .. }
        | S::AlterDatabase { .. }
        | S::DropDatabase { .. }
        | S::CreateUser { .. }
        | S::AlterUser { .. }
        | S::DropUser { .. }
        | S::RenameUser(_)
        | S::CreateRole { .. }
        | S::DropRole { .. }
        | S::Grant(_)
        | S::Revoke(_)
        | S::Begin { .. }
        | S::Commit { .. }
        | S::Rollback { .. } => Err(errors::commit_not_allowed_in_sf_or_trg()),
        S::SetPassword { .. } => Err(errors::sp_cant_set_autocommit()),
        _ => unsupported("this statement in stored functions"),
    }
}

/// SET in a function: as `check_in_function`, but for what is true: it takes the session to do it.
fn check_set_in_function(item: &SetItem) -> Result<bool> {
    match item {
        SetItem::User { .. } => Ok(false),
        SetItem::System { scope: None | Some(VariableScope::Session), name, .. } if name.eq_ignore_ascii_case("autocommit") => Err(errors::sp_cant_set_autocommit()),
        SetItem::System { .. } | SetItem::Names { .. } | SetItem::CharacterSet(_) => Ok(true),
        SetItem::Transaction { .. } => unsupported("SET TRANSACTION in stored functions"),
    }
}

impl Parser<'_> {
    /// CREATE … PROCEDURE or FUNCTION, from there on.
    pub(super) fn create_routine(&mut self, kind: RoutineKind, definer: Option<UserName>) -> Result<Statement> {
        if self.routine.is_some() {
            return Err(errors::sp_no_recursive_create(kind.name()));
        }
        self.expect_kw(kind.name())?;
        let if_not_exists = self.if_not_exists();
        let name = self.program_name()?;
        if kind == RoutineKind::Function && self.is_kw("RETURNS") {
            return unsupported("loadable functions");
        }
        let mut state = RoutineState { returns: kind == RoutineKind::Function, ..RoutineState::default() };
        state.open_scope(false);
        self.routine = Some(Box::new(state));
        let parameters = self.routine_parameters()?;
        let mut returns = String::new();
        if kind == RoutineKind::Function {
            self.expect_kw("RETURNS")?;
            let start = self.start();
            let ty = self.data_type()?;
            returns = self.sql[start..self.previous_end()].to_string();
            self.routine().program.returns = Some(ty);
        }
        let characteristics = self.characteristics(true)?;
        let start = self.start();
        self.step()?;
        let body = without_versions(self.sql, start..self.previous_end(), &self.options);
        let program = self.routine.take().map(|state| state.program).unwrap_or_default();
        Ok(Statement::CreateRoutine(Box::new(CreateRoutine {
            kind,
            if_not_exists,
            definer,
            name,
            parameters,
            returns,
            characteristics,
            body,
            program,
        })))
    }

    /// The body of an event: its text. Error 1576 inside of a routine.
    pub(super) fn event_body(&mut self) -> Result<String> {
        if self.routine.is_some() {
            return Err(errors::event_recursion_forbidden());
        }
        let mut state = RoutineState::default();
        state.open_scope(false);
        self.routine = Some(Box::new(state));
        let start = self.start();
        self.step()?;
        self.routine = None;
        Ok(without_versions(self.sql, start..self.previous_end(), &self.options))
    }

    /// CREATE … TRIGGER, from there on.
    pub(super) fn create_trigger(&mut self, definer: Option<UserName>) -> Result<Statement> {
        if self.routine.is_some() {
            return Err(errors::sp_no_recursive_create("TRIGGER"));
        }
        self.expect_kw("TRIGGER")?;
        let if_not_exists = self.if_not_exists();
        let name = self.program_name()?;
        let time = match self.any_kw(&["BEFORE", "AFTER"]) {
            Some("BEFORE") => TriggerTime::Before,
            Some(_) => TriggerTime::After,
            None => return self.fail(),
        };
        let event = match self.any_kw(&["INSERT", "UPDATE", "DELETE"]) {
            Some("INSERT") => TriggerEvent::Insert,
            Some("UPDATE") => TriggerEvent::Update,
            Some(_) => TriggerEvent::Delete,
            None => return self.fail(),
        };
        self.expect_kw("ON")?;
        let mut table = self.object_name()?;
        if table.schema.is_none() {
            // It is of the trigger's schema.
            table.schema.clone_from(&name.schema);
        }
        self.expect_kw("FOR")?;
        self.expect_kw("EACH")?;
        self.expect_kw("ROW")?;
        let place = match self.any_kw(&["FOLLOWS", "PRECEDES"]) {
            Some("FOLLOWS") => TriggerPlace::Behind(self.ident()?),
            Some(_) => TriggerPlace::Before(self.ident()?),
            None => TriggerPlace::Last,
        };
        let mut state = RoutineState { trigger: Some((event, time)), ..RoutineState::default() };
        state.open_scope(false);
        self.routine = Some(Box::new(state));
        let start = self.start();
        self.step()?;
        let body = without_versions(self.sql, start..self.previous_end(), &self.options);
        let program = self.routine.take().map(|state| state.program).unwrap_or_default();
        Ok(Statement::CreateTrigger(Box::new(CreateTrigger { if_not_exists, definer, name, time, event, table, place, body, program })))
    }

    /// A column of the trigger's row, if the name means one. Error 1363.
    pub(super) fn row_column(&mut self, name: &ColumnRef) -> Result<Option<ExprKind>> {
        let (None, Some(row)) = (&name.schema, &name.table) else { return Ok(None) };
        let variable = self.row_variable(row, &name.column, false)?;
        Ok(variable.map(|variable| self.local_parameter(variable)))
    }

    /// The variable that stands for `row.column` in a trigger; `None` if that is no column of its row. Errors 1362 and 1363.
    fn row_variable(&mut self, row: &str, column: &str, assigned: bool) -> Result<Option<usize>> {
        let Some(routine) = self.routine.as_mut() else { return Ok(None) };
        let Some((event, time)) = routine.trigger else { return Ok(None) };
        let new = same(row, "NEW");
        if !new && !same(row, "OLD") {
            return Ok(None);
        }
        if assigned && !new {
            return Err(errors::trg_cant_change_row("OLD", ""));
        }
        let without = if new { TriggerEvent::Delete } else { TriggerEvent::Insert };
        if event == without {
            return Err(errors::trg_no_such_row_in_trg(if new { "NEW" } else { "OLD" }, format_args!("on {}", event.name())));
        }
        if assigned && time == TriggerTime::After {
            return Err(errors::trg_cant_change_row("NEW", "after "));
        }
        let program = &mut routine.program;
        if let Some(known) = program.row_columns.iter_mut().find(|known| known.new == new && same(&known.column, column)) {
            known.assigned |= assigned;
            known.read |= !assigned;
            return Ok(Some(known.variable));
        }
        let variable = program.variables.len();
        program.variables.push(Variable { name: column.to_owned(), ty: None });
        program.row_columns.push(RowColumn { variable, new, column: column.to_owned(), assignable: new && time == TriggerTime::Before, assigned, read: !assigned });
        Ok(Some(variable))
    }

    /// `NEW.column =` of SET: the variable, and the sign is taken too.
    fn assigned_row_column(&mut self) -> Result<Option<usize>> {
        let is_row = self.is_any_kw(&["NEW", "OLD"]) && self.is_sym_at(1, ".");
        let Some(row) = self.word().filter(|_| is_row && (self.is_sym_at(3, "=") || self.is_sym_at(3, ":="))) else { return Ok(None) };
        if self.routine().trigger.is_none() {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let column = self.ident_after_dot()?;
        self.advance();
        if self.is_kw("DEFAULT") && !self.is_sym_at(1, "(") {
            return self.fail();
        }
        self.row_variable(row, &column, true)
    }

    /// `(IN a INT, …)`: the text between the parentheses.
    fn routine_parameters(&mut self) -> Result<String> {
        self.expect_sym("(")?;
        let start = self.previous_end();
        while !self.is_sym(")") {
            let modes: &[&str] = if self.in_function() { &[] } else { &["INOUT", "OUT", "IN"] };
            let mode = match self.any_kw(modes) {
                Some("OUT") => ParameterMode::Out,
                Some("INOUT") => ParameterMode::InOut,
                _ => ParameterMode::In,
            };
            let name = self.ident()?;
            let ty = self.data_type()?;
            let routine = self.routine();
            if find(&routine.current().variables, &name).is_some() {
                return Err(errors::sp_dup_param(name));
            }
            routine.program.parameters.push(mode);
            routine.declare_variable(name, Some(ty));
            if !self.sym(",") {
                break;
            }
            if self.is_sym(")") {
                return self.fail();
            }
        }
        let text = self.sql[start..self.start()].to_string();
        self.expect_sym(")")?;
        Ok(text)
    }

    /// What is said of a routine, in any order. DETERMINISTIC belongs to its definition: `defines`.
    pub(super) fn characteristics(&mut self, defines: bool) -> Result<Characteristics> {
        let mut said = Characteristics::default();
        loop {
            if self.kw("COMMENT") {
                said.comment = Some(self.string()?);
            } else if self.kws(&["LANGUAGE", "SQL"]) {
            } else if defines && self.kws(&["NOT", "DETERMINISTIC"]) {
                said.deterministic = Some(false);
            } else if defines && self.kw("DETERMINISTIC") {
                said.deterministic = Some(true);
            } else if self.kws(&["CONTAINS", "SQL"]) {
                said.data_access = Some(DataAccess::ContainsSql);
            } else if self.kws(&["NO", "SQL"]) {
                said.data_access = Some(DataAccess::NoSql);
            } else if self.kws(&["READS", "SQL", "DATA"]) {
                said.data_access = Some(DataAccess::ReadsSqlData);
            } else if self.kws(&["MODIFIES", "SQL", "DATA"]) {
                said.data_access = Some(DataAccess::ModifiesSqlData);
            } else if self.kws(&["SQL", "SECURITY"]) {
                let word = self.any_kw(&["DEFINER", "INVOKER"]).ok_or_else(|| self.error())?;
                said.invoker = Some(word == "INVOKER");
            } else {
                return Ok(said);
            }
        }
    }

    /// CALL name[(args)].
    pub(super) fn call_statement(&mut self) -> Result<Statement> {
        self.expect_kw("CALL")?;
        let name = self.object_name()?;
        let mut args = Vec::new();
        if self.sym("(") && !self.sym(")") {
            args = self.list(Self::expr)?;
            self.expect_sym(")")?;
        }
        Ok(Statement::Call(Box::new(Call { name, args })))
    }

    /// The variable of the routine that the current token names.
    pub(super) fn local(&self) -> Option<usize> {
        let routine = self.routine.as_ref()?;
        match self.peek() {
            Tok::Quoted(name) => routine.variable(name),
            Tok::Word { reserved: false } => routine.variable(self.word()?),
            _ => None,
        }
    }

    /// As `local`, of a name that has been read.
    pub(super) fn local_named(&self, name: &str) -> Option<usize> {
        self.routine.as_ref()?.variable(name)
    }

    /// The variable is one more parameter of the current statement.
    pub(super) fn local_parameter(&mut self, variable: usize) -> ExprKind {
        self.routine().locals.push(variable);
        self.params += 1;
        ExprKind::Param(self.params - 1)
    }

    /// The body that is being read is a function's.
    pub(super) fn in_function(&self) -> bool {
        self.routine.as_ref().is_some_and(|routine| routine.returns)
    }

    /// Of a variable that LIMIT names.
    pub(super) fn local_is_integer(&self, variable: usize) -> bool {
        use DataTypeKind as K;
        let ty = self.routine.as_ref().and_then(|routine| routine.program.variables[variable].ty.as_ref());
        ty.is_some_and(|ty| matches!(ty.kind, K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Bool | K::Serial | K::Bit(_)))
    }

    /// LIMIT names a variable: in a function, the session has to run it.
    pub(super) fn limit_by_local(&mut self) {
        let in_function = self.in_function();
        self.routine().program.in_session |= in_function;
    }

    fn routine(&mut self) -> &mut RoutineState {
        self.routine.as_mut().expect("called inside of routines only")
    }

    /// A statement of the routine, or an expression, with parameters of its own.
    fn with_locals<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Vec<usize>)> {
        self.params = 0;
        self.routine().locals.clear();
        let parsed = f(self)?;
        self.params = 0;
        Ok((parsed, std::mem::take(&mut self.routine().locals)))
    }

    fn routine_expr(&mut self) -> Result<Box<RoutineExpr>> {
        let (expr, locals) = self.with_locals(Self::expr)?;
        Ok(Box::new(RoutineExpr { expr, locals }))
    }

    fn routine_statement(&mut self, parse: impl FnOnce(&mut Self) -> Result<Statement>) -> Result<RoutineStatement> {
        let start = self.start();
        self.blocks = 0;
        let (statement, locals) = self.with_locals(parse)?;
        let end = self.previous_end();
        let set_vars = hints_of(self.sql, start..end, &self.options)?;
        Ok(RoutineStatement { statement, text: self.sql[start..end].to_string(), locals, set_vars })
    }

    /// One statement of a body.
    fn step(&mut self) -> Result<()> {
        self.deeper(Self::step_inner)
    }

    fn step_inner(&mut self) -> Result<()> {
        if self.is_ident() && self.is_sym_at(1, ":") {
            let label = self.ident()?;
            self.advance();
            if self.routine().label(&label, false).is_some() {
                return Err(errors::sp_label_redefine(label));
            }
            return match self.word().unwrap_or_default().to_ascii_uppercase().as_str() {
                "BEGIN" => self.block(Some(label)),
                "LOOP" | "WHILE" | "REPEAT" => self.loops(Some(label)),
                _ => self.fail(),
            };
        }
        let Some(word) = self.word() else { return self.plain_step() };
        match word.to_ascii_uppercase().as_str() {
            "BEGIN" => self.block(None),
            "LOOP" | "WHILE" | "REPEAT" => self.loops(None),
            "IF" => self.if_steps(),
            "CASE" => self.case_steps(),
            "LEAVE" | "ITERATE" => self.leave_step(),
            "OPEN" => {
                self.advance();
                let cursor = self.cursor_name()?;
                self.routine().push(Instruction::Open(cursor));
                Ok(())
            }
            "CLOSE" => {
                self.advance();
                let cursor = self.cursor_name()?;
                self.routine().push(Instruction::Close(cursor));
                Ok(())
            }
            "FETCH" => self.fetch_step(),
            "SET" => self.set_steps(),
            "RETURN" if self.in_function() => {
                self.advance();
                let value = self.routine_expr()?;
                self.routine().push(Instruction::Return(value));
                Ok(())
            }
            "RETURN" => Err(errors::sp_badreturn()),
            "USE" => Err(errors::sp_badstatement("USE")),
            "LOAD" => Err(errors::sp_badstatement(if self.is_kw_at(1, "XML") { "LOAD XML" } else { "LOAD DATA" })),
            "HANDLER" => Err(errors::sp_badstatement("HANDLER")),
            "LOCK" => Err(errors::sp_badstatement("LOCK")),
            "UNLOCK" => Err(errors::sp_badstatement("UNLOCK")),
            "ALTER" if self.is_kw_at(1, "VIEW") => Err(errors::sp_badstatement("ALTER VIEW")),
            "DROP" | "ALTER" if self.is_kw_at(1, "PROCEDURE") => Err(errors::sp_no_drop_sp("PROCEDURE")),
            "DROP" | "ALTER" if self.is_kw_at(1, "FUNCTION") => Err(errors::sp_no_drop_sp("FUNCTION")),
            "CREATE" if self.is_kw_at(1, "FUNCTION") => Err(errors::sp_no_recursive_create("FUNCTION")),
            "CREATE" if self.is_kw_at(1, "TRIGGER") => Err(errors::sp_no_recursive_create("TRIGGER")),
            _ => self.plain_step(),
        }
    }

    /// A statement like those outside of routines.
    fn plain_step(&mut self) -> Result<()> {
        if self.at_end() {
            return self.fail();
        }
        let mut statement = self.routine_statement(Self::statement)?;
        if matches!(statement.statement, Statement::CreateView(_)) && !statement.locals.is_empty() {
            return Err(errors::view_select_variable());
        }
        let in_function = self.in_function();
        let into = match &mut statement.statement {
            Statement::Query(query) if matches!(query.into, Some(Into::Targets(_))) || (in_function && matches!(query.into, Some(Into::Variables(_)))) => query.into.take(),
            _ => None,
        };
        let instruction = match into {
            Some(Into::Targets(into)) => Instruction::SelectInto { query: Box::new(statement), into },
            Some(Into::Variables(names)) => Instruction::SelectInto { query: Box::new(statement), into: names.into_iter().map(Target::User).collect() },
            _ => {
                if in_function {
                    let changes = check_in_function(&statement.statement)?;
                    let program = &mut self.routine().program;
                    program.changes |= changes;
                    program.in_session |= changes;
                }
                Instruction::Run(Box::new(statement))
            }
        };
        self.routine().push(instruction);
        Ok(())
    }

    /// Statements, each with its semicolon, up to one of the words.
    fn steps_until(&mut self, words: &[&str]) -> Result<()> {
        while !self.is_any_kw(words) {
            self.step()?;
            self.semicolon()?;
        }
        Ok(())
    }

    /// BEGIN … END.
    fn block(&mut self, label: Option<String>) -> Result<()> {
        self.expect_kw("BEGIN")?;
        self.open_label(label.clone(), false);
        let routine = self.routine();
        let (handlers, cursors) = (routine.program.handlers.len(), routine.program.cursors.len());
        routine.open_scope(false);
        while self.is_kw("DECLARE") {
            self.declare()?;
            self.semicolon()?;
        }
        self.steps_until(&["END"])?;
        self.expect_kw("END")?;
        let routine = self.routine();
        let exits = std::mem::take(&mut routine.current().exits);
        exits.into_iter().for_each(|exit| routine.land(exit));
        routine.leave(handlers, cursors);
        routine.names.pop();
        self.close_label();
        self.end_label(label.as_deref())
    }

    fn declare(&mut self) -> Result<()> {
        self.expect_kw("DECLARE")?;
        if self.is_any_kw(&["CONTINUE", "EXIT"]) && self.is_kw_at(1, "HANDLER") {
            return self.declare_handler();
        }
        if self.is_ident() && self.is_kw_at(1, "CURSOR") {
            return self.declare_cursor();
        }
        let late = {
            let names = self.routine().current();
            !names.cursors.is_empty() || !names.handled.is_empty()
        };
        if self.is_ident() && self.is_kw_at(1, "CONDITION") {
            let name = self.ident()?;
            self.advance();
            self.expect_kw("FOR")?;
            let condition = self.condition_value()?;
            if late {
                return Err(errors::sp_varcond_after_curshndlr());
            }
            let names = self.routine().current();
            if find(&names.conditions, &name).is_some() {
                return Err(errors::sp_dup_cond(name));
            }
            names.conditions.push((name, condition));
            return Ok(());
        }
        let declared = self.list(Self::ident)?;
        for (at, name) in declared.iter().enumerate() {
            let known = find(&self.routine().current().variables, name).is_some();
            if known || declared[..at].iter().any(|before| same(before, name)) {
                return Err(errors::sp_dup_var(name));
            }
        }
        let ty = self.data_type()?;
        if late {
            return Err(errors::sp_varcond_after_curshndlr());
        }
        let value = if self.kw("DEFAULT") {
            self.routine_expr()?
        } else {
            let at = self.start();
            Box::new(RoutineExpr { expr: Expr { kind: ExprKind::Literal(Literal::Null), span: Span { start: at, end: at } }, locals: Vec::new() })
        };
        let routine = self.routine();
        for name in declared {
            let variable = routine.declare_variable(name, Some(ty.clone()));
            routine.push(Instruction::Set { variable, value: value.clone(), resume: None });
        }
        Ok(())
    }

    fn declare_cursor(&mut self) -> Result<()> {
        let name = self.ident()?;
        self.advance();
        self.expect_kw("FOR")?;
        if !self.is_any_kw(&["SELECT", "WITH", "VALUES", "TABLE", "SHOW"]) && !self.is_sym("(") {
            return self.fail();
        }
        if self.is_kw("SHOW") {
            return unsupported("a cursor for SHOW");
        }
        let query = self.routine_statement(|p| Ok(Statement::Query(Box::new(p.query()?))))?;
        if matches!(&query.statement, Statement::Query(query) if query.into.is_some()) {
            return Err(errors::sp_bad_cursor_select());
        }
        let routine = self.routine();
        if !routine.current().handled.is_empty() {
            return Err(errors::sp_cursor_after_handler());
        }
        if find(&routine.current().cursors, &name).is_some() {
            return Err(errors::sp_dup_curs(name));
        }
        routine.program.cursors.push(query);
        let number = routine.program.cursors.len() - 1;
        routine.current().cursors.push((name, number));
        Ok(())
    }

    fn cursor_name(&mut self) -> Result<usize> {
        let name = self.ident()?;
        self.routine().cursor(&name).ok_or_else(|| errors::sp_cursor_mismatch(name))
    }

    /// FETCH [[NEXT] FROM] cursor INTO variable, …
    fn fetch_step(&mut self) -> Result<()> {
        self.expect_kw("FETCH")?;
        if !self.kws(&["NEXT", "FROM"]) {
            self.kw("FROM");
        }
        let cursor = self.cursor_name()?;
        self.expect_kw("INTO")?;
        let into = self.list(|p| {
            let local = p.local();
            let name = p.ident()?;
            local.ok_or_else(|| errors::sp_undeclared_var(name))
        })?;
        self.routine().push(Instruction::Fetch { cursor, into });
        Ok(())
    }

    /// SET: each assignment is a step of its own, as in MySQL.
    fn set_steps(&mut self) -> Result<()> {
        let assigns = self.is_sym_at(2, "=") || self.is_sym_at(2, ":=");
        if self.is_kw_at(1, "PASSWORD") || (["ROLE", "DEFAULT", "RESOURCE"].iter().any(|word| self.is_kw_at(1, word)) && !assigns) {
            return self.plain_step();
        }
        if assigns && self.is_kw_at(1, "NAMES") && self.local_named("NAMES").is_some() {
            return Err(errors::sp_bad_var_shadow("names"));
        }
        self.expect_kw("SET")?;
        let mut inherited = None;
        loop {
            let mut assigned = self.assigned_row_column()?;
            if assigned.is_none() {
                assigned = self.local().filter(|_| self.is_sym_at(1, "=") || self.is_sym_at(1, ":="));
                if assigned.is_some() {
                    self.advance();
                    self.advance();
                }
            }
            let instruction = match assigned {
                Some(variable) => Instruction::Set { variable, value: self.routine_expr()?, resume: None },
                None => {
                    let start = self.start();
                    let (item, locals) = self.with_locals(|p| p.set_item(&mut inherited))?;
                    if let SetItem::System { name, .. } = &item
                        && crate::variables::find(name).is_none()
                    {
                        return Err(errors::unknown_system_variable(name));
                    }
                    let text = format!("SET {}", &self.sql[start..self.previous_end()]);
                    if self.in_function() {
                        let in_session = check_set_in_function(&item)?;
                        self.routine().program.in_session |= in_session;
                    }
                    let statement = RoutineStatement { statement: Statement::Set(vec![item]), text, locals, set_vars: Vec::new() };
                    Instruction::Run(Box::new(statement))
                }
            };
            self.routine().push(instruction);
            if !self.sym(",") {
                return Ok(());
            }
        }
    }

    /// `@name`, or a variable of the routine. Error 1327.
    pub(super) fn target(&mut self) -> Result<Target> {
        if let Tok::UserVar(name) = self.peek() {
            let name = name.clone();
            self.advance();
            return Ok(Target::User(name));
        }
        let local = self.local();
        let name = self.ident()?;
        local.map(Target::Local).ok_or_else(|| errors::sp_undeclared_var(name))
    }
}
