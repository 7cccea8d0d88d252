//! Several sessions beside each other: who waits, for whom, and what everybody then sees.
//!
//! A script (`tests/sessions/NAME.sessions`) is tests, each of steps on numbered sessions:
//!
//! ```text
//! test lost_update RC RR            at these isolation levels; at all four without
//! setup CREATE TABLE t (id INT PRIMARY KEY, v INT)
//! 1: BEGIN
//! 2: UPDATE t SET v = 2             ends where the line ends
//! 2                                 until session 2 has its answer: for timeouts
//! ```
//!
//! `record` runs it on a real MySQL and writes `NAME.recorded`, the same with an answer below each step:
//!
//! ```text
//! test lost_update RC
//! 1: UPDATE t SET v = 1
//!   ok 1
//! 2: UPDATE t SET v = 2
//!   waits
//! 1: COMMIT
//!   ok 0
//!   2: ok 1                         what session 2 was waiting for has ended
//! 3: COMMIT
//!   busy                            it still waits for what it was told before, and is not told this
//! 1: SELECT * FROM t
//!   row 1     2
//! ```
//!
//! `run` does the same steps on a server and compares. Tests run several at a time, each in a schema of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Result;
use crate::golden::{Action, Answer, Executor, Protocol, ask, connect, same, version};

/// What is not answered in this time waits. On a real MySQL, whose answers are the truth, there is more of it.
const WAITS_AFTER: Duration = Duration::from_millis(60);
const WAITS_AFTER_RECORDING: Duration = Duration::from_millis(400);
/// An answer that is to come comes in this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const TESTS_AT_ONCE: usize = 16;

const LEVELS: [(&str, &str); 4] =
    [("RU", "READ UNCOMMITTED"), ("RC", "READ COMMITTED"), ("RR", "REPEATABLE READ"), ("SER", "SERIALIZABLE")];

/// One test at one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Test {
    name: String,
    level: String,
    setup: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    session: u32,
    /// `None`: waits for what the session was told before.
    sql: Option<String>,
    /// `None`: it waits. Of a step without a statement there is none.
    answer: Option<Answer>,
    /// The session still waited, so the statement was left out. Levels differ in that.
    busy: bool,
    /// Answers that came after it to what had been waiting.
    ended: BTreeMap<u32, Answer>,
}

pub async fn run(action: Action) -> Result<()> {
    action.run(record, check).await
}

async fn check(url: &str, file: &Path, protocol: Protocol, executor: Executor) -> Result<(usize, usize)> {
    let (mut passed, mut failed) = (0, 0);
    let tests = parse(&std::fs::read_to_string(file)?).map_err(|e| format!("{}: {e}", file.display()))?;
    for (test, found) in run_all(url, tests, protocol, executor, WAITS_AFTER).await? {
        let differences = differences(&test, &found);
        if differences.is_empty() {
            passed += 1;
        } else {
            failed += 1;
            println!("{}: {} at {}\n{differences}", file.display(), test.name, test.level);
        }
    }
    Ok((passed, failed))
}

async fn record(url: &str, script: &Path) -> Result<()> {
    let mut connection = connect(url, "golden").await?;
    let mut out = format!("# Recorded by `highkey-sim sessions record` from {}.\n", version(&mut connection).await?);
    let tests = parse(&std::fs::read_to_string(script)?).map_err(|e| format!("{}: {e}", script.display()))?;
    for (_, found) in run_all(url, tests, Protocol::Text, Executor::Auto, WAITS_AFTER_RECORDING).await? {
        write_test(&mut out, &found);
    }
    let target = script.with_extension("recorded");
    std::fs::write(&target, out)?;
    println!("{}", target.display());
    Ok(())
}

/// Runs tests, several at a time. Each with what was found, in the order given.
async fn run_all(url: &str, tests: Vec<Test>, protocol: Protocol, executor: Executor, waits_after: Duration) -> Result<Vec<(Test, Test)>> {
    let mut done = BTreeMap::new();
    let mut running = JoinSet::new();
    for (number, test) in tests.into_iter().enumerate() {
        if running.len() >= TESTS_AT_ONCE {
            let (number, pair) = running.join_next().await.expect("some run")??;
            done.insert(number, pair);
        }
        let url = url.to_string();
        running.spawn(async move {
            let schema = format!("sessions_{}", number % TESTS_AT_ONCE.pow(2));
            let found = Run::begin(&url, &schema, &test, protocol, executor, waits_after).await?.steps(&test).await?;
            Ok::<_, crate::Error>((number, (test, found)))
        });
    }
    while let Some(ended) = running.join_next().await {
        let (number, pair) = ended??;
        done.insert(number, pair);
    }
    Ok(done.into_values().collect())
}

/// A session, run by a task of its own.
struct Session {
    statements: mpsc::UnboundedSender<String>,
    answers: mpsc::UnboundedReceiver<Result<Answer>>,
    waiting: bool,
}

impl Session {
    fn new(mut connection: Conn, protocol: Protocol) -> Session {
        let (statements, mut told) = mpsc::unbounded_channel::<String>();
        let (tell, answers) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(sql) = told.recv().await {
                let mut answer = ask(&mut connection, &sql, protocol).await;
                if let Ok(Answer::Rows(rows)) = &mut answer
                    && !sql.to_ascii_lowercase().contains("order by")
                {
                    rows.sort();
                }
                if tell.send(answer).is_err() {
                    return;
                }
            }
            let _ = connection.disconnect().await;
        });
        Session { statements, answers, waiting: false }
    }

    fn tell(&mut self, sql: &str) {
        self.statements.send(sql.to_string()).expect("a session's task lives as long as the session");
        self.waiting = true;
    }

    /// Its answer, if it comes in time.
    async fn answer(&mut self, within: Duration) -> Result<Option<Answer>> {
        match tokio::time::timeout(within, self.answers.recv()).await {
            Err(_) => Ok(None),
            Ok(answer) => {
                self.waiting = false;
                answer.ok_or("a session's task has gone")?.map(Some)
            }
        }
    }
}

struct Run {
    sessions: BTreeMap<u32, Session>,
    main: Conn,
    schema: String,
    waits_after: Duration,
}

impl Run {
    async fn begin(url: &str, schema: &str, test: &Test, protocol: Protocol, executor: Executor, waits_after: Duration) -> Result<Run> {
        let mut main = connect(url, schema).await?;
        for sql in &test.setup {
            main.query_drop(sql).await.map_err(|e| format!("{}: {sql}: {e}", test.name))?;
        }
        let level = LEVELS.iter().find(|(short, _)| *short == test.level).expect("levels are checked when parsed").1;
        let mut sessions = BTreeMap::new();
        for step in &test.steps {
            if sessions.contains_key(&step.session) {
                continue;
            }
            let mut connection = crate::golden::open(url).await?;
            connection.query_drop(format!("USE {schema}")).await?;
            connection.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await?;
            crate::golden::set_ways(&mut connection, protocol, executor).await?;
            sessions.insert(step.session, Session::new(connection, protocol));
        }
        Ok(Run { sessions, main, schema: schema.to_string(), waits_after })
    }

    /// The test with what really came.
    async fn steps(mut self, test: &Test) -> Result<Test> {
        let mut found = test.clone();
        for (step, expected) in found.steps.iter_mut().zip(&test.steps) {
            let recorded = expected.answer.is_some() || !expected.ended.is_empty();
            (step.answer, step.busy) = (None, false);
            step.ended.clear();
            let session = self.sessions.get_mut(&step.session).expect("made for every step");
            match &step.sql {
                Some(_) if session.waiting => step.busy = true,
                Some(sql) => {
                    session.tell(sql);
                    let within = if expected.answer.is_some() { ANSWER_WITHIN } else { self.waits_after };
                    step.answer = session.answer(within).await?;
                }
                None => {
                    if session.waiting
                        && let Some(answer) = session.answer(ANSWER_WITHIN).await?
                    {
                        step.ended.insert(step.session, answer);
                    }
                }
            }
            // Those whose answer is to come have time; of the others it is seen whether one comes that should not.
            for (&number, session) in self.sessions.iter_mut().filter(|(_, s)| s.waiting) {
                if number == step.session && step.sql.is_some() && !step.busy && !expected.ended.contains_key(&number) {
                    continue;
                }
                let within = match expected.ended.contains_key(&number) {
                    true => ANSWER_WITHIN,
                    false if recorded => Duration::ZERO,
                    false => self.waits_after,
                };
                if let Some(answer) = session.answer(within).await? {
                    step.ended.insert(number, answer);
                }
            }
        }
        // Who still waits is let go by the others' end.
        let (waiting, idle): (Vec<_>, Vec<_>) = self.sessions.into_values().partition(|s| s.waiting);
        for mut session in idle.into_iter().chain(waiting) {
            if session.waiting {
                session.answer(ANSWER_WITHIN).await?;
            }
            session.tell("ROLLBACK");
            // One that another session has killed has no answer.
            let _ = session.answer(ANSWER_WITHIN).await;
        }
        self.main.query_drop(format!("DROP DATABASE {}", self.schema)).await?;
        self.main.disconnect().await?;
        Ok(found)
    }
}

/// What came otherwise, for people; empty if nothing.
fn differences(want: &Test, found: &Test) -> String {
    let mut out = String::new();
    let alike = |want: &Option<Answer>, found: &Option<Answer>| match (want, found) {
        (Some(want), Some(found)) => same(found, want),
        _ => want == found,
    };
    for (want, found) in want.steps.iter().zip(&found.steps) {
        let sql = want.sql.as_deref().unwrap_or("(its answer)");
        if want.busy != found.busy {
            let _ = writeln!(out, "  line {}: {}: {sql}\n    waited before: {}, should: {}", want.line, want.session, found.busy, want.busy);
        } else if !alike(&want.answer, &found.answer) {
            let _ = writeln!(out, "  line {}: {}: {sql}\n    want {:?}\n    got  {:?}", want.line, want.session, want.answer, found.answer);
        }
        for session in want.ended.keys().chain(found.ended.keys().filter(|s| !want.ended.contains_key(s))) {
            let (want_end, found_end) = (want.ended.get(session).cloned(), found.ended.get(session).cloned());
            if !alike(&want_end, &found_end) {
                let _ = writeln!(out, "  line {}: {}: {sql}\n    session {session} should have got {want_end:?}\n    and got {found_end:?}", want.line, want.session);
            }
        }
    }
    out
}

fn parse(text: &str) -> Result<Vec<Test>> {
    let mut tests: Vec<Test> = Vec::new();
    // The levels of the script's present test, whose copies are made at its end.
    let mut levels: Vec<String> = Vec::new();
    let mut all = Vec::new();
    let mut finish = |test: Option<Test>, levels: &[String]| {
        if let Some(test) = test {
            all.extend(levels.iter().map(|level| Test { level: level.clone(), ..test.clone() }));
        }
    };
    for (at, line) in text.lines().enumerate() {
        let bad = || format!("line {}: {line}", at + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("test ") {
            finish(tests.pop(), &levels);
            let mut words = rest.split_whitespace();
            let name = words.next().ok_or_else(bad)?.to_string();
            levels = words.map(String::from).collect();
            if levels.is_empty() {
                levels = LEVELS.iter().map(|(short, _)| short.to_string()).collect();
            }
            if levels.iter().any(|level| !LEVELS.iter().any(|(short, _)| short == level)) {
                return Err(bad().into());
            }
            tests.push(Test { name, ..Test::default() });
            continue;
        }
        let test = tests.last_mut().ok_or_else(bad)?;
        if let Some(sql) = line.strip_prefix("setup ") {
            test.setup.push(sql.into());
        } else if let Some(answer) = line.strip_prefix("  ") {
            let step = test.steps.last_mut().ok_or_else(bad)?;
            match answer.split_once(": ").and_then(|(session, rest)| Some((session.parse::<u32>().ok()?, rest))) {
                Some((session, rest)) => read_answer(rest, step.ended.entry(session).or_insert(Answer::Rows(Vec::new()))).ok_or_else(bad)?,
                None if answer == "waits" => step.answer = None,
                None if answer == "busy" => step.busy = true,
                None => read_answer(answer, step.answer.get_or_insert(Answer::Rows(Vec::new()))).ok_or_else(bad)?,
            }
        } else {
            let (session, sql) = match line.split_once(": ") {
                Some((session, sql)) => (session, Some(sql.to_string())),
                None => (line, None),
            };
            let session = session.trim().parse().map_err(|_| bad())?;
            test.steps.push(Step { line: at + 1, session, sql, answer: None, busy: false, ended: BTreeMap::new() });
        }
    }
    finish(tests.pop(), &levels);
    Ok(all)
}

/// One line of an answer into `answer`; a row is added to the rows before it.
fn read_answer(text: &str, answer: &mut Answer) -> Option<()> {
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        ["ok", affected] => *answer = Answer::Ok { affected: affected.parse().ok()? },
        ["error", code, state] => *answer = Answer::Error { code: code.parse().ok()?, state: state.to_string() },
        ["empty"] => {}
        _ => match answer {
            Answer::Rows(rows) => rows.push(text.strip_prefix("row ")?.into()),
            _ => return None,
        },
    }
    Some(())
}

fn write_test(out: &mut String, test: &Test) {
    let _ = writeln!(out, "\ntest {} {}", test.name, test.level);
    for sql in &test.setup {
        let _ = writeln!(out, "setup {sql}");
    }
    for step in &test.steps {
        match &step.sql {
            Some(sql) => {
                let _ = writeln!(out, "{}: {sql}", step.session);
                match &step.answer {
                    _ if step.busy => out.push_str("  busy\n"),
                    Some(answer) => write_answer(out, "  ", answer),
                    None => out.push_str("  waits\n"),
                }
            }
            None => {
                let _ = writeln!(out, "{}", step.session);
            }
        }
        for (session, answer) in &step.ended {
            write_answer(out, &format!("  {session}: "), answer);
        }
    }
}

fn write_answer(out: &mut String, before: &str, answer: &Answer) {
    let _ = match answer {
        Answer::Ok { affected } => writeln!(out, "{before}ok {affected}"),
        Answer::Error { code, state } => writeln!(out, "{before}error {code} {state}"),
        Answer::Rows(rows) if rows.is_empty() => writeln!(out, "{before}empty"),
        Answer::Rows(rows) => rows.iter().try_for_each(|row| writeln!(out, "{before}row {row}")),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# A comment.\ntest a RC RR\nsetup CREATE TABLE t (a INT)\n1: SELECT 'x: y'\n\n2: COMMIT\n2\n\ntest b SER\n1: BEGIN\n";

    #[test]
    fn a_script_is_a_test_at_each_level() {
        let tests = parse(SCRIPT).unwrap();
        let names: Vec<_> = tests.iter().map(|t| format!("{} {} {}", t.name, t.level, t.steps.len())).collect();
        assert_eq!(names, ["a RC 3", "a RR 3", "b SER 1"]);
        assert_eq!(tests[0].steps[0].sql.as_deref(), Some("SELECT 'x: y'"));
        assert_eq!((tests[0].steps[2].session, &tests[0].steps[2].sql), (2, &None));
        assert!(parse("test a NO\n").is_err() && parse("1: SELECT 1\n").is_err() && parse("test a\nx: SELECT 1\n").is_err());
    }

    #[test]
    fn what_is_recorded_reads_back_and_a_difference_is_one() {
        let mut test = parse(SCRIPT).unwrap().remove(1);
        test.steps[0].answer = Some(Answer::Rows(vec!["1\tNULL".into(), "2\tb".into()]));
        test.steps[1].ended.insert(1, Answer::Error { code: 1213, state: "40001".into() });
        test.steps[2].ended.insert(2, Answer::Rows(vec![]));
        let mut text = String::new();
        write_test(&mut text, &test);
        let read = parse(&text).unwrap().remove(0);
        assert_eq!((read.name.as_str(), read.level.as_str(), &read.setup), ("a", "RR", &test.setup));
        assert_eq!(differences(&test, &read), "");
        let mut other = read.clone();
        other.steps[1].answer = Some(Answer::Ok { affected: 0 });
        assert!(differences(&test, &other).contains("COMMIT"));
        let mut other = read;
        other.steps[1].ended.clear();
        assert!(differences(&test, &other).contains("1213"));
    }
}
