//! Events, as far as golden answers cannot show them: their runs, what starts the scheduler again and what does not, privileges.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Client, Server, table};

struct Scheduler {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Scheduler {
    fn start(server: &Server) -> Scheduler {
        let (stop, stopped) = watch::channel(false);
        Scheduler { stop, task: tokio::spawn(crate::run_events(server.instance.clone(), stopped)) }
    }

    /// All runs have ended then.
    async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }
}

/// Waits until a query has this for an answer.
async fn until(c: &mut Client, query: &str, wanted: &str) {
    let begun = Instant::now();
    loop {
        let found = c.value(query).await;
        if found == wanted {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{query}: {found}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const EVENTS: &str = "SELECT COUNT(*) FROM information_schema.EVENTS";

#[tokio::test]
async fn events_run_once_and_again_and_go() {
    let server = Server::new();
    let mut c = server.client().await;
    let scheduler = Scheduler::start(&server);
    c.ok("CREATE TABLE r (who VARCHAR(10), what VARCHAR(200))").await;
    c.ok("SET time_zone = '+05:00', sql_mode = 'ANSI', autocommit = 0").await;
    let body = "BEGIN INSERT INTO r VALUES ('once', CONCAT_WS(' ', USER(), CURRENT_USER(), DATABASE(), @@time_zone, @@sql_mode LIKE '%ANSI%', @@autocommit)); SELECT 1; END";
    c.ok(&format!("CREATE EVENT once ON SCHEDULE AT NOW() DO {body}")).await;
    c.ok("SET time_zone = DEFAULT, sql_mode = DEFAULT, autocommit = 1").await;
    until(&mut c, EVENTS, "0").await;
    assert_eq!(c.value("SELECT what FROM r").await, "event_scheduler@localhost root@localhost d +05:00 1 1");
    // One that fails goes, too; what its statements have done before stays.
    c.ok("CREATE EVENT fails ON SCHEDULE AT NOW() DO BEGIN INSERT INTO r VALUES ('fails', 'before'); INSERT INTO nope VALUES (1); INSERT INTO r VALUES ('fails', 'behind'); END").await;
    until(&mut c, EVENTS, "0").await;
    assert_eq!(c.value("SELECT what FROM r WHERE who = 'fails'").await, "before");
    // One may be named as what it calls.
    c.ok("CREATE PROCEDURE calls() INSERT INTO r VALUES ('calls', '')").await;
    c.ok("CREATE EVENT calls ON SCHEDULE AT NOW() DO CALL calls()").await;
    until(&mut c, EVENTS, "0").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM r WHERE who = 'calls'").await, "1");
    c.ok("CREATE EVENT again ON SCHEDULE EVERY 1 SECOND DO INSERT INTO r VALUES ('again', '')").await;
    until(&mut c, "SELECT COUNT(*) > 1 FROM r WHERE who = 'again'", "1").await;
    assert_eq!(c.value("SELECT LAST_EXECUTED IS NULL FROM information_schema.EVENTS").await, "0");
    c.ok("ALTER EVENT again DISABLE").await;
    scheduler.stop().await;
}

#[tokio::test]
async fn a_run_is_neither_lost_nor_doubled_when_the_scheduler_starts_again() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE r (who VARCHAR(10))").await;
    c.ok("CREATE EVENT missed ON SCHEDULE AT NOW() ON COMPLETION PRESERVE DO INSERT INTO r VALUES ('missed')").await;
    c.ok("CREATE EVENT off ON SCHEDULE AT NOW() ON COMPLETION PRESERVE DISABLE DO INSERT INTO r VALUES ('off')").await;
    for round in 0..3 {
        let scheduler = Scheduler::start(&server);
        c.ok(&format!("CREATE EVENT round ON SCHEDULE AT NOW() DO INSERT INTO r VALUES ('round{round}')")).await;
        until(&mut c, EVENTS, "2").await;
        scheduler.stop().await;
        let status = "SELECT EVENT_NAME, STATUS FROM information_schema.EVENTS ORDER BY 1";
        assert_eq!(c.rows(status).await, table("missed DISABLED|off DISABLED"));
    }
    assert_eq!(c.rows("SELECT who FROM r ORDER BY who").await, table("missed|round0|round1|round2"));
    // Another schedule is another chance.
    let scheduler = Scheduler::start(&server);
    c.ok("ALTER EVENT missed ON SCHEDULE AT NOW() ON COMPLETION NOT PRESERVE ENABLE").await;
    until(&mut c, EVENTS, "1").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM r WHERE who = 'missed'").await, "2");
    // One that has run does not run again for being enabled.
    c.ok("ALTER EVENT off ENABLE").await;
    until(&mut c, "SELECT COUNT(*) FROM r WHERE who = 'off'", "1").await;
    until(&mut c, "SELECT STATUS FROM information_schema.EVENTS", "DISABLED").await;
    c.ok("ALTER EVENT off ENABLE").await;
    until(&mut c, "SELECT STATUS FROM information_schema.EVENTS", "DISABLED").await;
    assert_eq!(c.value("SELECT COUNT(*) FROM r WHERE who = 'off'").await, "1");
    scheduler.stop().await;
}

#[tokio::test]
async fn the_first_moment_of_an_event_counts_however_late_it_is_seen() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE r (n INT)").await;
    let scheduler = Scheduler::start(&server);
    until(&mut c, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Daemon'", "1").await;
    let then = c.value("SELECT UNIX_TIMESTAMP()").await;
    until(&mut c, &format!("SELECT UNIX_TIMESTAMP() > {then}"), "1").await;
    // As if the statement had taken so long.
    c.ok(&format!("SET timestamp = {then}")).await;
    c.ok("CREATE EVENT e ON SCHEDULE EVERY 1 YEAR DO INSERT INTO r VALUES (1)").await;
    c.ok("SET timestamp = DEFAULT").await;
    until(&mut c, "SELECT COUNT(*) FROM r", "1").await;
    // Not again for what it says.
    c.ok("ALTER EVENT e COMMENT 'x'").await;
    c.ok("CREATE EVENT f ON SCHEDULE AT NOW() DO INSERT INTO r VALUES (2)").await;
    until(&mut c, "SELECT COUNT(*) FROM r", "2").await;
    scheduler.stop().await;
    assert_eq!(c.rows("SELECT n FROM r ORDER BY n").await, table("1|2"));
}

#[tokio::test]
async fn a_schema_that_is_to_be_dropped_keeps_no_event_of_another_waiting() {
    let server = Server::new();
    let mut c = server.client().await;
    let mut reader = server.client().await;
    c.ok("CREATE TABLE r (n INT)").await;
    c.ok("CREATE DATABASE other").await;
    c.ok("CREATE TABLE other.t (n INT)").await;
    c.ok("CREATE EVENT other.e ON SCHEDULE AT NOW() DO DO 1").await;
    reader.ok("BEGIN").await;
    assert!(reader.rows("SELECT * FROM other.t").await.is_empty());
    let mut dropper = server.client().await;
    let dropped = tokio::spawn(async move { dropper.ok("DROP DATABASE other").await });
    until(&mut c, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%metadata lock'", "1").await;
    let scheduler = Scheduler::start(&server);
    c.ok("CREATE EVENT e ON SCHEDULE AT NOW() DO INSERT INTO r VALUES (1)").await;
    until(&mut c, "SELECT COUNT(*) FROM r", "1").await;
    reader.ok("COMMIT").await;
    dropped.await.unwrap();
    scheduler.stop().await;
}

/// SLEEP holds its thread.
#[tokio::test(flavor = "multi_thread")]
async fn the_scheduler_is_in_the_process_list_as_long_as_it_is_on() {
    let server = Server::new();
    let mut c = server.client().await;
    let daemons = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'event_scheduler' AND HOST = 'localhost' AND COMMAND = 'Daemon'";
    let scheduler = Scheduler::start(&server);
    until(&mut c, daemons, "1").await;
    until(&mut c, "SELECT STATE FROM information_schema.PROCESSLIST WHERE COMMAND = 'Daemon'", "Waiting on empty queue").await;
    assert_eq!(c.rows("SHOW STATUS LIKE 'Threads_connected'").await, table("Threads_connected 1"));
    c.ok("CREATE EVENT later ON SCHEDULE AT NOW() + INTERVAL 1 YEAR DO DO 1").await;
    until(&mut c, "SELECT STATE FROM information_schema.PROCESSLIST WHERE COMMAND = 'Daemon'", "Waiting for next activation").await;
    c.ok("SET GLOBAL event_scheduler = OFF").await;
    until(&mut c, daemons, "0").await;
    c.ok("SET GLOBAL event_scheduler = ON").await;
    until(&mut c, daemons, "1").await;
    let id = c.value("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Daemon'").await;
    c.ok(&format!("KILL {id}")).await;
    until(&mut c, daemons, "0").await;
    assert_eq!(c.value("SELECT @@event_scheduler").await, "OFF");
    // A run has an entry of its own, which can be killed.
    c.ok("SET GLOBAL event_scheduler = ON").await;
    c.ok("CREATE EVENT long_one ON SCHEDULE AT NOW() DO DO SLEEP(1000)").await;
    let run = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'root' AND COMMAND = 'Connect' AND INFO = 'DO SLEEP(1000)'";
    until(&mut c, run, "1").await;
    let id = c.value(&run.replace("COUNT(*)", "ID")).await;
    c.ok(&format!("KILL {id}")).await;
    until(&mut c, EVENTS, "1").await;
    scheduler.stop().await;
    assert_eq!(c.value(daemons).await, "0");
}

/// The errors are those of MySQL 8.0.12.
#[tokio::test]
async fn events_ask_for_their_privilege_and_run_with_their_definers() {
    let server = Server::new();
    let mut root = server.client().await;
    root.ok("CREATE DATABASE other").await;
    root.ok("CREATE TABLE r (who VARCHAR(10))").await;
    root.ok("CREATE TABLE secret (who VARCHAR(10))").await;
    for user in ["a", "b"] {
        root.ok(&format!("CREATE USER {user}@localhost")).await;
    }
    root.ok("GRANT EVENT ON d.* TO a@localhost").await;
    root.ok("GRANT INSERT ON d.r TO a@localhost").await;
    root.ok("GRANT SELECT ON d.* TO b@localhost").await;
    root.ok("CREATE EVENT e ON SCHEDULE EVERY 1 YEAR DO DO 1").await;
    let denied = |user: &str, schema: &str| (1044, format!("Access denied for user '{user}'@'localhost' to database '{schema}'"));
    let mut b = server.connect_as("b");
    for sql in ["CREATE EVENT d.f ON SCHEDULE EVERY 1 DAY DO DO 1", "ALTER EVENT d.e DISABLE", "DROP EVENT d.e", "SHOW CREATE EVENT d.e", "SHOW EVENTS FROM d"] {
        assert_eq!(b.error(sql).await, denied("b", "d"), "{sql}");
    }
    assert_eq!(b.value(EVENTS).await, "0");
    let mut a = server.connect_as("a");
    assert_eq!(a.error("ALTER EVENT d.e RENAME TO other.e").await, denied("a", "other"));
    let other = (1227, "Access denied; you need (at least one of) the SUPER or SET_USER_ID privilege(s) for this operation".to_owned());
    assert_eq!(a.error("CREATE DEFINER=root@localhost EVENT d.f ON SCHEDULE EVERY 1 DAY DO DO 1").await, other);
    assert_eq!(a.error("ALTER DEFINER=root@localhost EVENT d.e ENABLE").await, other);
    a.ok("ALTER EVENT d.e COMMENT 'mine now'").await;
    assert_eq!(a.value("SELECT DEFINER FROM information_schema.EVENTS").await, "a@localhost");
    a.ok("DROP EVENT d.e").await;

    let scheduler = Scheduler::start(&server);
    a.ok("CREATE EVENT d.f ON SCHEDULE AT NOW() DO BEGIN INSERT INTO d.r VALUES ('a'); INSERT INTO d.secret VALUES ('a'); END").await;
    until(&mut root, EVENTS, "0").await;
    assert_eq!(root.rows("SELECT * FROM r").await, table("a"));
    assert_eq!(root.value("SELECT COUNT(*) FROM secret").await, "0");
    // Who may not make events any more has none that run.
    scheduler.stop().await;
    a.ok("CREATE EVENT d.g ON SCHEDULE AT NOW() DO INSERT INTO d.r VALUES ('late')").await;
    root.ok("REVOKE EVENT ON d.* FROM a@localhost").await;
    root.ok("CREATE DEFINER=nobody@nowhere EVENT h ON SCHEDULE AT NOW() DO INSERT INTO r VALUES ('nobody')").await;
    let scheduler = Scheduler::start(&server);
    until(&mut root, EVENTS, "0").await;
    assert_eq!(root.rows("SELECT * FROM r").await, table("a"));
    scheduler.stop().await;
}

#[tokio::test]
async fn definitions_and_drops_are_told_to_the_binary_log() {
    let server = Server::with(|settings| {
        settings.set("log_bin", Some("ON")).unwrap();
    });
    let mut c = server.client().await;
    c.ok("SET time_zone = '+00:00', timestamp = 1700000000").await;
    c.ok("CREATE EVENT e ON SCHEDULE EVERY 2 DAY COMMENT 'x' DO BEGIN DO 1; DO 2; END").await;
    c.ok("ALTER EVENT e COMMENT ''").await;
    c.ok("ALTER EVENT e ON SCHEDULE AT '2037-01-01' ON COMPLETION PRESERVE RENAME TO f DISABLE DO DO 3").await;
    c.ok("DROP EVENT f").await;
    c.ok("SET timestamp = DEFAULT").await;
    let scheduler = Scheduler::start(&server);
    c.ok("CREATE EVENT gone ON SCHEDULE AT '2001-01-01' DO DO 1").await;
    c.ok("CREATE EVENT once ON SCHEDULE AT NOW() DO DO 1").await;
    until(&mut c, EVENTS, "0").await;
    scheduler.stop().await;
    let told: Vec<String> = c.rows("SHOW BINLOG EVENTS").await.into_iter().filter(|row| row[2] == "Query" && row[5].contains("EVENT")).map(|row| row[5].clone()).collect();
    let told: Vec<&str> = told.iter().map(|text| text.split_once("; ").map_or(text.as_str(), |(used, text)| if used.starts_with("use ") { text } else { used })).collect();
    let definer = "DEFINER=`root`@`localhost` EVENT `d`";
    assert_eq!(told[0], format!("CREATE {definer}.`e` ON SCHEDULE EVERY 2 DAY STARTS '2023-11-14 22:13:20' ON COMPLETION NOT PRESERVE ENABLE COMMENT 'x' DO BEGIN DO 1; DO 2; END"));
    assert_eq!(told[1], format!("ALTER {definer}.`e` COMMENT ''"));
    assert_eq!(told[2], format!("ALTER {definer}.`e` ON SCHEDULE AT '2037-01-01 00:00:00' ON COMPLETION PRESERVE RENAME TO `d`.`f` DISABLE DO DO 3"));
    assert_eq!(told[3], "DROP EVENT f");
    assert!(told[4].starts_with(&format!("CREATE {definer}.`once` ON SCHEDULE AT ")), "{}", told[4]);
    assert_eq!(told[5..], ["DROP EVENT IF EXISTS `d`.`once`"]);
}

/// As MySQL 8.0.12 has it.
#[tokio::test]
async fn read_only_servers_run_events_and_refuse_changes_of_them() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE r (who VARCHAR(10))").await;
    c.ok("CREATE USER ev").await;
    c.ok("GRANT ALL ON d.* TO ev").await;
    c.ok("CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO INSERT INTO r VALUES ('e')").await;
    c.ok("SET GLOBAL read_only = ON").await;
    let scheduler = Scheduler::start(&server);
    c.ok("CREATE DEFINER = ev EVENT theirs ON SCHEDULE AT NOW() DO INSERT INTO r VALUES ('theirs')").await;
    c.ok("CREATE EVENT ours ON SCHEDULE AT NOW() DO INSERT INTO r VALUES ('ours')").await;
    until(&mut c, EVENTS, "1").await;
    assert_eq!(c.rows("SELECT DISTINCT who FROM r WHERE who <> 'e'").await, table("ours"));
    c.ok("CREATE EVENT once ON SCHEDULE AT NOW() + INTERVAL 2 SECOND ON COMPLETION PRESERVE DO SET GLOBAL wait_timeout = 1111").await;
    c.ok("SET GLOBAL super_read_only = ON").await;
    for (statement, code) in [
        ("CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO SELECT 1", 1537),
        ("CREATE EVENT nope.e ON SCHEDULE EVERY 1 HOUR DO SELECT 1", 1049),
        ("CREATE EVENT f ON SCHEDULE EVERY -1 HOUR DO SELECT 1", 1542),
        ("CREATE EVENT f ON SCHEDULE EVERY 1 HOUR DO SELECT 1", 1290),
        ("ALTER EVENT f DISABLE", 1539),
        ("ALTER EVENT e RENAME TO e", 1551),
        ("ALTER EVENT e DISABLE", 1290),
        ("DROP EVENT f", 1539),
        ("DROP EVENT e", 1290),
        ("DROP PROCEDURE f", 1305),
    ] {
        assert_eq!(c.error(statement).await.0, code, "{statement}");
    }
    c.ok("CREATE EVENT IF NOT EXISTS e ON SCHEDULE EVERY 1 HOUR DO SELECT 1").await;
    c.ok("DROP EVENT IF EXISTS f").await;
    until(&mut c, "SELECT @@GLOBAL.wait_timeout", "1111").await;
    assert_eq!(c.rows("SELECT STATUS, LAST_EXECUTED IS NULL FROM information_schema.EVENTS WHERE EVENT_NAME = 'once'").await, table("ENABLED 1"));
    scheduler.stop().await;
}
