//! Tables of `mysql` that a restore makes, and what FLUSH PRIVILEGES makes of them.

mod common;

use std::sync::Arc;

use common::*;
use highkey_table::*;
use highkey_types::{MySqlError, Value};

fn cx() -> DdlContext {
    DdlContext::default()
}

/// Makes a table of `mysql` whose first `key` columns are its key, and fills it. A column whose name begins with `#` is a number.
fn restore(db: &Arc<Database>, name: &str, columns: &[&str], key: usize, rows: &[&[&str]]) {
    let is_number = |name: &str| name.starts_with('#');
    let column = |name: &&str| if is_number(name) { int(&name[1..]) } else { varchar(name, 100) };
    let mut columns_of_table: Vec<ColumnDef> = columns.iter().map(column).collect();
    columns_of_table.iter_mut().take(key).for_each(|column| column.nullable = false);
    let primary: Vec<usize> = (0..key).collect();
    let spec = TableSpec::new("mysql", name, columns_of_table, vec![IndexSpec::primary(&primary)]);
    let table = block_on(db.create_table(&cx(), spec)).unwrap();
    let value = |(column, text): (&&str, &&str)| if is_number(column) { i(text.parse().unwrap()) } else { t(text) };
    let values: Vec<Vec<Value>> = rows.iter().map(|row| columns.iter().zip(*row).map(value).collect()).collect();
    if !values.is_empty() {
        fill(db, &table, values);
    }
}

fn load(db: &Arc<Database>) -> Result<usize, MySqlError> {
    block_on(db.load_privileges(&cx())).map(|dropped| dropped.len())
}

fn name(user: &str, host: &str) -> AccountName {
    AccountName { user: user.into(), host: host.into() }
}

const USER: [&str; 8] = ["Host", "User", "Select_priv", "Drop_role_priv", "plugin", "authentication_string", "password_expired", "account_locked"];

fn restore_users(db: &Arc<Database>) {
    let rows: [&[&str]; 3] = [
        &["localhost", "root", "Y", "Y", "caching_sha2_password", "", "N", "N"],
        &["%", "u", "N", "N", "mysql_native_password", "*7B9E", "Y", "N"],
        &["%", "r", "N", "N", "caching_sha2_password", "", "N", "Y"],
    ];
    restore(db, "user", &USER, 2, &rows);
}

#[test]
fn a_restore_brings_accounts_back() {
    let disk = disk(7);
    let db = open(&disk);
    block_on(db.create_user(&cx(), UserDef { user: "old".into(), ..UserDef::root() })).unwrap();
    restore_users(&db);
    restore(&db, "db", &["Host", "Db", "User", "Select_priv", "Trigger_priv"], 3, &[&["%", "d%", "u", "Y", "Y"], &["%", "d", "nobody", "Y", "N"]]);
    restore(&db, "tables_priv", &["Host", "Db", "User", "Table_name", "Table_priv", "Column_priv"], 4, &[&["%", "d", "u", "t", "Show view,Grant", "Update"]]);
    restore(&db, "columns_priv", &["Host", "Db", "User", "Table_name", "Column_name", "Column_priv"], 5, &[&["%", "d", "u", "t", "a", "Update,References"]]);
    restore(&db, "procs_priv", &["Host", "Db", "User", "Routine_name", "Routine_type", "Proc_priv"], 5, &[&["%", "d", "u", "F", "FUNCTION", "Execute,Alter Routine"]]);
    restore(&db, "proxies_priv", &["Host", "User", "Proxied_host", "Proxied_user", "#With_grant"], 4, &[&["localhost", "root", "", "", "1"]]);
    restore(&db, "role_edges", &["FROM_HOST", "FROM_USER", "TO_HOST", "TO_USER", "WITH_ADMIN_OPTION"], 4, &[&["%", "r", "%", "u", "Y"], &["%", "gone", "%", "u", "N"]]);
    restore(&db, "default_roles", &["HOST", "USER", "DEFAULT_ROLE_HOST", "DEFAULT_ROLE_USER"], 4, &[&["%", "u", "%", "r"]]);
    restore(&db, "global_grants", &["USER", "HOST", "PRIV", "WITH_GRANT_OPTION"], 3, &[&["u", "%", "BINLOG_ADMIN", "Y"]]);
    restore(&db, "help_category", &["name"], 1, &[&["Help"]]);
    assert!(db.catalog().user("old", "localhost").is_some(), "nothing is in force before FLUSH PRIVILEGES");
    let db = {
        drop(db);
        open(&disk)
    };
    assert_eq!(db.catalog().schemas().iter().filter(|schema| &*schema.name == "mysql").count(), 1);
    let version = db.accounts_version();
    assert_eq!(load(&db).unwrap(), 9);
    assert!(db.accounts_version() > version);
    assert_eq!(load(&db).unwrap(), 0, "the tables are gone");
    let db = {
        drop(db);
        open(&disk)
    };
    let catalog = db.catalog();
    assert!(catalog.find_table("mysql", "help_category").is_some() && catalog.find_table("mysql", "user").is_none());
    let names: Vec<(String, String)> = catalog.users().iter().map(|user| (user.user.clone(), user.host.clone())).collect();
    assert_eq!(names, [("r", "%"), ("root", "localhost"), ("u", "%")].map(|(user, host)| (user.to_owned(), host.to_owned())));
    let user = catalog.user("u", "%").unwrap();
    assert_eq!((user.plugin.as_str(), user.authentication_string.as_str(), user.password_expired, user.account_locked), ("mysql_native_password", "*7B9E", true, false));
    let table = TableGrants { table: Privileges::SHOW_VIEW.and(Privileges::GRANT), columns: [("a".to_owned(), Privileges::UPDATE.and(Privileges::by_name("REFERENCES").unwrap()))].into() };
    let expected = Grants {
        dynamic: [("BINLOG_ADMIN".to_owned(), true)].into(),
        schemas: [("d%".to_owned(), Privileges::SELECT.and(Privileges::TRIGGER))].into(),
        tables: [("d".to_owned(), [("t".to_owned(), table)].into())].into(),
        functions: [("d".to_owned(), [("f".to_owned(), Privileges::OF_ROUTINE)].into())].into(),
        roles: [name("r", "%")].into(),
        administered: [name("r", "%")].into(),
        default_roles: [name("r", "%")].into(),
        ..Grants::default()
    };
    assert_eq!(user.grants, expected);
    let root = catalog.user("root", "localhost").unwrap();
    assert_eq!(root.grants.global, Privileges::SELECT.and(Privileges::DROP_ROLE));
    assert!(root.grants.dynamic.is_empty(), "global_grants has none of root");
    assert_eq!((&root.grants.proxied, &root.grants.proxied_grantable), (&[name("", "")].into(), &[name("", "")].into()));
    assert!(catalog.user("r", "%").unwrap().account_locked);
    check(&db);
}

#[test]
fn what_no_table_tells_stays() {
    let db = database();
    let mut known = UserDef { user: "u".into(), host: "%".into(), grants: Grants::default(), ..UserDef::root() };
    known.grants.dynamic.insert("BINLOG_ADMIN".into(), false);
    known.grants.schemas.insert("s".into(), Privileges::INSERT);
    known.grants.global = Privileges::PROCESS;
    block_on(db.create_user(&cx(), known.clone())).unwrap();
    restore(&db, "db", &["Host", "Db", "User", "Drop_priv"], 3, &[&["%", "x", "u", "Y"]]);
    assert_eq!(load(&db).unwrap(), 1);
    known.grants.schemas = [("x".to_owned(), Privileges::DROP)].into();
    assert_eq!(*db.catalog().user("u", "%").unwrap(), known);
    restore_users(&db);
    load(&db).unwrap();
    let user = db.catalog().user("u", "%").unwrap();
    assert_eq!((user.grants.global, &user.grants.schemas, &user.grants.dynamic), (Privileges::NONE, &known.grants.schemas, &known.grants.dynamic));
}

/// MySQL before 5.7: without their passwords anybody could log in.
#[test]
fn passwords_in_a_column_of_their_own_are_restored() {
    let db = database();
    let columns = ["Host", "User", "Password", "plugin", "authentication_string"];
    restore(&db, "user", &columns, 2, &[&["%", "old", "*7B9E", "", ""], &["%", "named", "*7B9F", "mysql_native_password", ""], &["%", "new", "*7B9G", "caching_sha2_password", "$A$"]]);
    assert_eq!(load(&db).unwrap(), 1);
    let of = |name: &str| db.catalog().user(name, "%").map(|user| (user.plugin.clone(), user.authentication_string.clone())).unwrap();
    let native = |hash: &str| ("mysql_native_password".to_owned(), hash.to_owned());
    assert_eq!((of("old"), of("named"), of("new")), (native("*7B9E"), native("*7B9F"), ("caching_sha2_password".to_owned(), "$A$".to_owned())));
}

/// A restore that has stopped before the rows would leave nobody who can log in.
#[test]
fn a_table_without_accounts_is_not_taken() {
    let db = database();
    let before = db.catalog().users();
    assert!(!db.has_restored_privileges());
    restore(&db, "user", &USER, 2, &[]);
    assert!(db.has_restored_privileges());
    assert_eq!(load(&db).unwrap_err().code, 1728);
    assert_eq!(db.catalog().users(), before);
    assert!(db.catalog().find_table("mysql", "user").is_some());
}

#[test]
fn tables_that_are_no_tables_of_accounts_change_nothing() {
    let db = database();
    let before = db.catalog().users();
    restore(&db, "user", &["Host", "Name"], 1, &[&["%", "u"]]);
    assert_eq!(load(&db).unwrap_err().code, 1728);
    assert_eq!(db.catalog().users(), before);
    block_on(db.drop_tables(&cx(), &[("mysql".into(), "user".into())], false)).unwrap();
    assert_eq!(load(&db).unwrap(), 0);
}

#[test]
fn system_schemas_have_no_other_tables() {
    let db = database();
    let make = |schema: &str, name: &str| {
        let spec = TableSpec::new(schema, name, vec![int("a")], vec![]);
        block_on(db.create_table(&cx(), spec)).map(|_| ()).map_err(|e| e.code)
    };
    assert_eq!((make("mysql", "t"), make("sys", "user"), make("MYSQL", "user"), make("information_schema", "user")), (Err(3552), Err(3552), Err(3552), Err(3552)));
    assert_eq!((make("mysql", "slow_log"), make("sys", "sys_config"), make("mysql", "slow_log")), (Ok(()), Ok(()), Err(1050)));
    let drop = |name: &str, if_exists: bool| block_on(db.drop_tables(&cx(), &[("mysql".into(), name.into())], if_exists)).map(|missing| missing.len()).map_err(|e| e.code);
    assert_eq!((drop("user", false), drop("user", true), drop("t", true), drop("slow_log", false)), (Err(3552), Ok(1), Err(3552), Ok(0)));
    assert_eq!(block_on(db.truncate_table(&cx(), "mysql", "user")).unwrap_err().code, 3552);
    assert!(is_server_table("mysql", "user") && !is_server_table("sys", "host_summary"));
}
