//! Data definition: what it makes, what it refuses, who waits for whom.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use highkey_table::*;
use highkey_types::{ColumnType, MySqlError, TypeKind, Value};

fn sample(db: &Arc<Database>) -> Arc<Table> {
    let table = create(
        db,
        "t",
        vec![int("id").not_null(), int("k"), varchar("s", 40)],
        vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[1])],
    );
    fill(db, &table, (0..500).map(sample_row).collect());
    table
}

fn sample_row(id: i64) -> Vec<Value> {
    vec![i(id), i(id % 7), t(&format!("name{id}"))]
}

fn cx() -> DdlContext {
    DdlContext::default()
}

fn alter(db: &Arc<Database>, plan: AlterPlan) -> Result<u64, MySqlError> {
    block_on(db.alter_table(&cx(), plan, &mut |row| Ok(row)))
}

#[test]
fn a_schema_that_is_there_is_known_while_it_is_locked() {
    let db = database();
    let mut txn = db.begin(Isolation::RepeatableRead);
    block_on(txn.create_table(&cx(), TableSpec::new("s", "new", vec![int("a")], vec![]))).unwrap();
    let at_once = DdlContext { lock_wait_timeout: Duration::ZERO, ..cx() };
    let collation = highkey_types::Collation::utf8mb4();
    let create = |name: &str| block_on(db.create_schema(&at_once, SchemaDef { name: name.into(), collation })).map_err(|e| e.code);
    assert_eq!((create("s"), create("other")), (Err(1007), Ok(())));
    assert_eq!(block_on(db.drop_schema(&at_once, "s")).unwrap_err().code, 1205, "it is locked");
}

#[test]
fn what_an_index_is_used_for_is_counted_under_its_name() {
    let db = database();
    let first = sample(&db);
    assert_eq!((first.uses(Some(0)), first.uses(Some(1)), first.uses(None)), (None, None, None), "this layer counts nothing by itself");
    first.count_use(Some(1), RowUse::Fetch, 3);
    first.count_use(None, RowUse::Insert, 500);
    first.count_use(Some(0), RowUse::Delete, 0);
    assert_eq!((first.uses(Some(0)), first.uses(Some(1)), first.uses(None)), (None, Some([3, 0, 0, 0]), Some([0, 500, 0, 0])));

    // Another index in front of it.
    block_on(db.create_index(&cx(), "s", "t", IndexSpec::unique("u", &[0]))).unwrap();
    let second = table(&db, "t");
    let (u, k) = (second.def().index("u"), second.def().index("k"));
    assert_eq!((second.uses(u), second.uses(k), second.uses(None)), (None, Some([3, 0, 0, 0]), Some([0, 500, 0, 0])));
    first.count_use(Some(1), RowUse::Update, 2);
    assert_eq!(second.uses(k), Some([3, 0, 2, 0]), "a statement may still have the definition before");
    second.clear_uses();
    assert_eq!((second.uses(k), second.uses(None)), (Some([0; 4]), Some([0; 4])));
    assert_eq!((second.index_of_changes(None), second.index_of_changes(k)), (Some(0), k));
    let keyless = create(&db, "keyless", vec![int("a")], vec![]);
    assert_eq!(keyless.index_of_changes(None), None);
}

#[test]
fn a_column_that_is_defined_anew_loses_its_histogram() {
    let db = database();
    let table_of = |db: &Arc<Database>| table(db, "t");
    sample(&db);
    for redefined in [vec![], vec![1], vec![2]] {
        let table = table_of(&db);
        let made = table.make_histograms(&mut db.begin(Isolation::RepeatableRead), &[1, 2], 10, 1 << 20).unwrap();
        table.store_histograms([1, 2].into_iter().zip(made.into_iter().map(Some)).collect()).unwrap();
        let mut plan = AlterPlan::of(&table);
        plan.redefined = redefined.clone();
        alter(&db, plan).unwrap();
        let left: Vec<usize> = [1, 2].into_iter().filter(|c| table_of(&db).histogram(*c).is_some()).collect();
        let expected: Vec<usize> = [1, 2].into_iter().filter(|c| !redefined.contains(c)).collect();
        assert_eq!(left, expected);
    }
}

fn name(table: &str) -> TableName {
    ("s".into(), table.into())
}

#[test]
fn tables_and_views_share_their_names() {
    let disk = disk(4);
    let db = open(&disk);
    create_schema(&db, "s").unwrap();
    sample(&db);
    let make = |name: &str, replace: bool, must_exist: bool| block_on(db.create_view(&cx(), view(name, "select 1"), replace, must_exist)).map_err(|e| e.code);
    assert_eq!((make("t", false, false), make("t", true, false), make("v", true, true)), (Err(1050), Err(1347), Err(1146)));
    assert_eq!((make("v", false, false), make("v", false, false), make("v", true, true)), (Ok(()), Err(1050), Ok(())));
    assert_eq!(try_create(&db, "v", vec![int("a")], vec![]).unwrap_err().code, 1050);
    let rename = |from: &str, to: &str| block_on(db.rename_tables(&cx(), &[(name(from), name(to))])).map_err(|e| e.code);
    assert_eq!((rename("t", "v"), rename("v", "t"), rename("v", "w")), (Err(1050), Err(1050), Ok(())));
    create_schema(&db, "s2").unwrap();
    assert_eq!(block_on(db.rename_tables(&cx(), &[(name("w"), ("s2".into(), "w".into()))])).unwrap_err().code, 1450);
    let mut plan = AlterPlan::of(&table(&db, "t"));
    plan.spec.name = "w".into();
    assert_eq!(alter(&db, plan).unwrap_err().code, 1050);
    assert_eq!(block_on(db.drop_tables(&cx(), &[name("w")], false)).unwrap_err().code, 1051);
    assert_eq!(block_on(db.drop_views(&cx(), &[name("t")], true)).unwrap_err().code, 1347);
    let before = format!("{:?}", db.catalog().find_view("s", "w").unwrap().def());
    db.shutdown().unwrap();
    drop(db);
    let db = open(&disk);
    assert_eq!(format!("{:?}", db.catalog().find_view("s", "w").unwrap().def()), before);
    assert_eq!(block_on(db.drop_views(&cx(), &[name("w"), name("v")], true)).unwrap(), [name("v")]);
    assert!(!db.catalog().has("s", "w"));
}

#[test]
fn a_view_that_is_read_stays_as_it_is() {
    let db = database();
    block_on(db.create_view(&cx(), view("v", "select 1"), false, false)).unwrap();
    let view_of = || db.catalog().find_view("s", "v").unwrap();
    let old = view_of();
    let mut reader = db.begin(Isolation::RepeatableRead);
    assert!(block_on(reader.open_view(&old)).unwrap());
    let at_once = DdlContext { lock_wait_timeout: Duration::ZERO, ..cx() };
    assert_eq!(block_on(db.create_view(&at_once, view("v", "select 2"), true, false)).unwrap_err().code, 1205);
    drop(reader);
    block_on(db.create_view(&at_once, view("v", "select 2"), true, false)).unwrap();
    assert!(!block_on(db.begin(Isolation::RepeatableRead).open_view(&old)).unwrap(), "its definition has changed");
    assert!(block_on(db.begin(Isolation::RepeatableRead).open_view(&view_of())).unwrap());
}

#[test]
fn definitions_survive_a_reopen() {
    let disk = disk(2);
    let db = open(&disk);
    create_schema(&db, "s").unwrap();
    assert_eq!(create_schema(&db, "s").unwrap_err().code, 1007);
    assert_eq!(create_schema(&db, "MySQL").unwrap_err().code, 1007);
    let members: Arc<[highkey_types::Str]> = ["a".into(), "b'c".into()].into();
    let mut columns = vec![
        int("id").auto_increment(),
        ColumnDef::new("e", ColumnType::with_collation(TypeKind::Enum(members), highkey_types::Collation::utf8mb4())),
        ColumnDef::new("d", ColumnType::new(TypeKind::Decimal { precision: 20, scale: 4 })),
        varchar("v", 10),
        ColumnDef::new("ts", ColumnType::new(TypeKind::Timestamp(3))),
        int("g"),
    ];
    columns[1].invisible = true;
    columns[1].explicit_collation = true;
    columns[3].default = Default::Literal(t("it's"));
    columns[3].comment = "a comment".into();
    columns[4].default = Default::CurrentTimestamp(3);
    columns[4].on_update_now = true;
    columns[5].generated = Some(Generated { expr: "id + 1".into(), stored: false });
    let mut spec = TableSpec::new("s", "t", columns, vec![IndexSpec::primary(&[0])]);
    spec.indexes.push(IndexSpec { name: None, invisible: true, ..IndexSpec::ordinary("", &[3, 1]) });
    spec.indexes.push(IndexSpec { name: None, ..IndexSpec::unique("", &[3]) });
    spec.checks.push(CheckDef { name: "t_chk_1".into(), expr: "id > 0".into(), enforced: true });
    spec.comment = "table".into();
    spec.auto_increment = Some(1000);
    let before = block_on(db.create_table(&cx(), spec)).unwrap();
    assert_eq!(before.reserve(1, 1, 1).unwrap().first, 1000);
    let user = UserDef { authentication_string: "*X".into(), ..account("u", Grants::default()) };
    block_on(db.create_user(&cx(), user.clone())).unwrap();
    assert_eq!(block_on(db.create_user(&cx(), user)).unwrap_err().code, 1396);
    db.shutdown().unwrap();
    let definition = format!("{:?}", before.def());
    drop((before, db));

    let db = open(&disk);
    let after = table(&db, "t");
    assert_eq!(format!("{:?}", after.def()), definition);
    assert_eq!(after.indexes()[1].name.as_ref(), "v_2");
    assert_eq!(after.indexes()[2].name.as_ref(), "v");
    assert_eq!(after.reserve(1, 1, 1).unwrap().first, 1001);
    let users: Vec<_> = db.catalog().users().iter().map(|u| format!("{}@{}", u.user, u.host)).collect();
    assert_eq!(users, ["root@localhost", "u@%"]);
    assert_eq!(db.catalog().schemas().len(), 5);
}

fn account_name(user: &str) -> AccountName {
    AccountName { user: user.into(), host: "%".into() }
}

fn account(user: &str, grants: Grants) -> UserDef {
    let AccountName { user, host } = account_name(user);
    UserDef {
        user,
        host,
        plugin: "mysql_native_password".into(),
        authentication_string: String::new(),
        password_expired: false,
        account_locked: false,
        grants,
    }
}

#[test]
fn who_had_a_role_has_it_no_more_when_it_is_dropped() {
    let disk = disk(2);
    let db = open(&disk);
    let with_roles = |user: &str, roles: &[&str]| {
        let roles: BTreeSet<AccountName> = roles.iter().map(|role| account_name(role)).collect();
        account(user, Grants { roles: roles.clone(), default_roles: roles, ..Grants::default() })
    };
    block_on(db.create_user(&cx(), with_roles("r", &[]))).unwrap();
    block_on(db.create_user(&cx(), with_roles("s", &[]))).unwrap();
    assert_eq!(block_on(db.create_user(&cx(), with_roles("u", &["nobody"]))).unwrap_err().code, 3523);
    block_on(db.create_user(&cx(), with_roles("u", &["r", "s"]))).unwrap();
    let version = db.accounts_version();
    block_on(db.drop_user(&cx(), "r", "%")).unwrap();
    assert!(db.accounts_version() > version);
    let left = |db: &Arc<Database>| db.catalog().user("u", "%").unwrap().grants.clone();
    let expected = with_roles("u", &["s"]).grants;
    assert_eq!(left(&db), expected);
    db.shutdown().unwrap();
    drop(db);
    assert_eq!(left(&open(&disk)), expected);
}

#[test]
fn an_account_changes_as_it_is_then_and_keeps_its_grants_with_its_name() {
    let disk = disk(2);
    let db = open(&disk);
    let of_u = Grants { global: Privileges::SELECT, roles: [account_name("r")].into(), ..Grants::default() };
    block_on(db.create_user(&cx(), account("r", Grants::default()))).unwrap();
    block_on(db.create_user(&cx(), account("u", of_u.clone()))).unwrap();
    let lock = |user: &mut UserDef| {
        user.account_locked = true;
        Ok(String::new())
    };
    block_on(db.alter_user(&cx(), "u", "%", lock)).unwrap();
    let set_password = |user: &mut UserDef| {
        assert!(user.account_locked);
        user.authentication_string = "*X".into();
        Ok(String::new())
    };
    block_on(db.alter_user(&cx(), "u", "%", set_password)).unwrap();
    let refused = |_: &mut UserDef| Err(MySqlError::with_message(1827, "no"));
    assert_eq!(block_on(db.alter_user(&cx(), "u", "%", refused)).unwrap_err().code, 1827);
    assert_eq!(block_on(db.alter_user(&cx(), "nobody", "%", |_: &mut UserDef| Ok(String::new()))).unwrap_err().code, 1396);

    assert_eq!(block_on(db.rename_user(&cx(), &account_name("r"), &account_name("s"))).unwrap_err().code, 3532);
    assert_eq!(block_on(db.rename_user(&cx(), &account_name("u"), &account_name("r"))).unwrap_err().code, 1396);
    assert_eq!(block_on(db.rename_user(&cx(), &account_name("nobody"), &account_name("s"))).unwrap_err().code, 1396);
    let version = db.accounts_version();
    block_on(db.rename_user(&cx(), &account_name("u"), &account_name("v"))).unwrap();
    assert!(db.accounts_version() > version);
    let expected = UserDef { authentication_string: "*X".into(), account_locked: true, ..account("v", of_u) };
    let renamed = |db: &Arc<Database>| (db.catalog().user("u", "%").is_none(), db.catalog().user("v", "%").map(|user| (*user).clone()));
    assert_eq!(renamed(&db), (true, Some(expected.clone())));
    db.shutdown().unwrap();
    drop(db);
    assert_eq!(renamed(&open(&disk)), (true, Some(expected)));
}

#[test]
fn impossible_tables_are_refused() {
    let db = database();
    let code = |columns, indexes| try_create(&db, "x", columns, indexes).unwrap_err().code;
    assert_eq!(code(vec![], vec![]), 1113);
    assert_eq!(code(vec![int("a"), int("A")], vec![]), 1060);
    let two = vec![IndexSpec::ordinary("i", &[0]), IndexSpec::ordinary("I", &[0])];
    assert_eq!(code(vec![int("a")], two), 1061);
    assert_eq!(code(vec![int("a"), int("b")], vec![IndexSpec::primary(&[0]), IndexSpec::primary(&[1])]), 1068);
    assert_eq!(code(vec![longblob("a")], vec![IndexSpec::ordinary("i", &[0])]), 1170);
    assert_eq!(code(vec![varchar("a", 800)], vec![IndexSpec::ordinary("i", &[0])]), 1071);
    assert_eq!(code(vec![int("a").auto_increment()], vec![]), 1075);
    assert_eq!(code(vec![varchar("a", 10_000), varchar("b", 10_000)], vec![]), 1118);
    let mut prefix = IndexSpec::ordinary("i", &[0]);
    prefix.parts[0].prefix = Some(3);
    assert_eq!(code(vec![int("a")], vec![prefix]), 1089);
    let wanted = TableSpec::new("nowhere", "t", vec![int("a")], vec![]);
    assert_eq!(block_on(db.create_table(&cx(), wanted)).unwrap_err().code, 1049);
    let wanted = TableSpec::new("mysql", "t", vec![int("a")], vec![]);
    assert_eq!(block_on(db.create_table(&cx(), wanted)).unwrap_err().code, 3552);
    assert!(db.catalog().tables("s").is_empty());
}

#[test]
fn drop_rename_and_truncate() {
    let db = database();
    let trees = db.engine().indexes().len();
    let table_before = sample(&db);
    assert_eq!(try_create(&db, "t", vec![int("a")], vec![]).unwrap_err().code, 1050);
    create_schema(&db, "other").unwrap();

    let to: TableName = ("other".into(), "moved".into());
    block_on(db.rename_tables(&cx(), &[(name("t"), to.clone())])).unwrap();
    assert!(!table_before.is_current());
    assert_eq!(db.catalog().table("s", "t").unwrap_err().code, 1146);
    assert_eq!(all(&db, &db.catalog().table("other", "moved").unwrap()).len(), 500);
    block_on(db.rename_tables(&cx(), &[(to, name("t"))])).unwrap();

    // An exchange through a third name.
    create(&db, "u", vec![int("only")], vec![]);
    let exchange =
        [(name("t"), name("tmp")), (name("u"), name("t")), (name("tmp"), name("u"))];
    block_on(db.rename_tables(&cx(), &exchange)).unwrap();
    assert_eq!(table(&db, "t").columns().len(), 1);
    assert_eq!(all(&db, &table(&db, "u")).len(), 500);
    let error = block_on(db.rename_tables(&cx(), &[(name("t"), name("u"))])).unwrap_err();
    assert_eq!(error.code, 1050);
    block_on(db.rename_tables(&cx(), &exchange)).unwrap();

    block_on(db.truncate_table(&cx(), "s", "t")).unwrap();
    let t = table(&db, "t");
    assert_eq!(all(&db, &t).len(), 0);
    assert_eq!(t.row_count_estimate().unwrap(), 0);
    fill(&db, &t, vec![sample_row(1)]);
    check(&db);

    let error = block_on(db.drop_tables(&cx(), &[name("t"), name("nix")], false)).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (1051, "Unknown table 's.nix'"));
    let missing = block_on(db.drop_tables(&cx(), &[name("t"), name("nix")], true)).unwrap();
    assert_eq!(missing, [name("nix")]);
    assert_eq!(block_on(db.drop_schema(&cx(), "s")).unwrap(), 1);
    assert_eq!(block_on(db.drop_schema(&cx(), "s")).unwrap_err().code, 1008);
    block_on(db.drop_schema(&cx(), "other")).unwrap();
    wait_for_trees(&db, trees);
}

/// Dropped trees are freed by a later step of the engine.
fn wait_for_trees(db: &Arc<Database>, expected: usize) {
    for _ in 0..500 {
        if db.engine().indexes().len() == expected {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{:?} trees are left, {expected} expected", db.engine().indexes());
}

#[test]
fn indexes_come_and_go() {
    let db = database();
    let before = sample(&db);
    let trees = db.engine().indexes().len();
    block_on(db.create_index(&cx(), "s", "t", IndexSpec::unique("by_s", &[2]))).unwrap();
    let t = table(&db, "t");
    assert_eq!(t.indexes()[0].id, before.indexes()[0].id);
    let by_s = t.def().index("BY_S").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let row = t.get(&mut txn, by_s, &[common::t("NAME42")]).unwrap().unwrap();
    assert_eq!(row.value(0), i(42));
    drop(txn);
    check(&db);

    let error = block_on(db.create_index(&cx(), "s", "t", IndexSpec::unique("bad", &[1]))).unwrap_err();
    assert_eq!(error.code, 1062);
    assert!(error.message.ends_with("for key 'bad'"), "{}", error.message);
    assert_eq!(table(&db, "t").indexes().len(), 3);
    let error = block_on(db.create_index(&cx(), "s", "t", IndexSpec::ordinary("K", &[2]))).unwrap_err();
    assert_eq!(error.code, 1061);

    block_on(db.drop_index(&cx(), "s", "t", "by_s")).unwrap();
    assert_eq!(block_on(db.drop_index(&cx(), "s", "t", "by_s")).unwrap_err().code, 1091);
    wait_for_trees(&db, trees);
    check(&db);
}

#[test]
fn primary_keys_come_and_go() {
    let db = database();
    let before = sample(&db);
    block_on(db.drop_index(&cx(), "s", "t", "PRIMARY")).unwrap();
    let t = table(&db, "t");
    assert_eq!(t.indexes()[0].kind, IndexKind::RowId);
    assert_eq!(t.id(), before.id());
    assert_eq!(all(&db, &t).len(), 500);
    fill(&db, &t, vec![vec![i(3), i(3), NULL]]);
    check(&db);
    let error = block_on(db.create_index(&cx(), "s", "t", IndexSpec::primary(&[0]))).unwrap_err();
    assert_eq!(error.message, "Duplicate entry '3' for key 'PRIMARY'");
    let mut plan = AlterPlan::of(&t);
    plan.spec.indexes.push(IndexSpec::primary(&[1, 0]));
    let error = alter(&db, plan.clone()).unwrap_err();
    assert_eq!(error.message, "Duplicate entry '3-3' for key 'PRIMARY'");
    plan.spec.indexes.pop();
    plan.spec.indexes.push(IndexSpec::primary(&[2]));
    assert_eq!(alter(&db, plan).unwrap_err().code, 1138);
    assert_eq!(all(&db, &table(&db, "t")).len(), 501);
    check(&db);
}

#[test]
fn columns_come_go_and_change() {
    let db = database();
    let old = sample(&db);

    // Names, defaults, comments and a longer VARCHAR: the catalog alone.
    let mut plan = AlterPlan::of(&old);
    plan.spec.columns[2].name = "longer".into();
    plan.spec.columns[2].ty.kind = TypeKind::VarChar(100);
    plan.spec.columns[1].default = Default::Literal(i(5));
    plan.spec.comment = "changed".into();
    assert_eq!(alter(&db, plan.clone()).unwrap(), 0);
    assert_eq!(table(&db, "t").indexes()[0].id, old.indexes()[0].id);
    assert_eq!(alter(&db, plan).unwrap_err().code, 1412);

    // A column in front, k dropped, s as a key: a copy.
    let now = table(&db, "t");
    let mut plan = AlterPlan::of(&now);
    plan.spec.columns = vec![int("new").not_null(), now.columns()[2].clone(), now.columns()[0].clone()];
    plan.spec.indexes = vec![IndexSpec::primary(&[2]), IndexSpec::ordinary("new", &[0]), IndexSpec::unique("s", &[1])];
    plan.columns = vec![None, Some(2), Some(0)];
    let mut n = 0;
    let copied = block_on(db.alter_table(&cx(), plan, &mut |row| {
        n += 1;
        Ok(vec![i(n), row[2].clone(), row[0].clone()])
    }))
    .unwrap();
    assert_eq!(copied, 500);
    let now = table(&db, "t");
    assert_eq!(all(&db, &now)[9], [i(10), t("name9"), i(9)]);
    check(&db);

    // A conversion that fails leaves everything.
    let mut plan = AlterPlan::of(&now);
    plan.convert_rows = true;
    let error = block_on(db.alter_table(&cx(), plan, &mut |row| {
        if row[0] == i(400) { Err(MySqlError::with_message(1265, "Data truncated")) } else { Ok(row) }
    }))
    .unwrap_err();
    assert_eq!(error.code, 1265);
    assert!(now.is_current());

    // An AUTO_INCREMENT column added later starts above what is there.
    let mut plan = AlterPlan::of(&now);
    plan.spec.columns[2].auto_increment = true;
    alter(&db, plan).unwrap();
    assert_eq!(table(&db, "t").reserve(1, 1, 1).unwrap().first, 500);
    let mut plan = AlterPlan::of(&table(&db, "t"));
    plan.spec.auto_increment = Some(10);
    alter(&db, plan).unwrap();
    assert_eq!(table(&db, "t").next_auto_increment(), Some(500));
    let mut plan = AlterPlan::of(&table(&db, "t"));
    plan.spec.auto_increment = Some(5000);
    plan.spec.name = "renamed".into();
    alter(&db, plan).unwrap();
    assert_eq!(table(&db, "renamed").reserve(1, 1, 1).unwrap().first, 5000);
    check(&db);
}

/// Until a DDL statement waits for the table, or has it.
fn wait_until_ddl_has(db: &Arc<Database>, table: &Arc<Table>) {
    while db.begin(Isolation::ReadCommitted).try_open(table) {
        std::thread::yield_now();
    }
}

#[test]
fn ddl_waits_for_transactions_and_they_for_ddl() {
    let db = database();
    let table_before = sample(&db);
    let mut user = db.begin(Isolation::RepeatableRead);
    block_on(user.table("s", "t")).unwrap();
    let short = DdlContext { lock_wait_timeout: Duration::from_millis(30), ..cx() };
    assert_eq!(block_on(db.truncate_table(&short, "s", "t")).unwrap_err().code, 1205);
    let interrupted = cx();
    interrupted.interrupt.raise();
    assert_eq!(block_on(db.truncate_table(&interrupted, "s", "t")).unwrap_err().code, 1317);

    let dropping = {
        let db = db.clone();
        std::thread::spawn(move || block_on(db.drop_tables(&cx(), &[name("t")], false)))
    };
    wait_until_ddl_has(&db, &table_before);
    let later = {
        let db = db.clone();
        std::thread::spawn(move || {
            let mut txn = db.begin(Isolation::RepeatableRead);
            block_on(txn.table("s", "t")).map(|_| ())
        })
    };
    std::thread::sleep(Duration::from_millis(20));
    // The holder goes on undisturbed.
    assert_eq!(rows_in(&mut user, &table_before, 0, &KeyRange::all(), Direction::Forward).len(), 500);
    block_on(user.commit()).unwrap();
    dropping.join().unwrap().unwrap();
    assert_eq!(later.join().unwrap().unwrap_err().code, 1146);
}

#[test]
fn what_ddl_has_is_not_opened_without_waiting() {
    let db = database();
    let table = sample(&db);
    let mut reader = db.begin(Isolation::ReadCommitted);
    assert!(reader.try_open(&table) && reader.try_open(&table));
    let drop_it = {
        let db = db.clone();
        std::thread::spawn(move || block_on(db.drop_tables(&cx(), &[name("t")], false)))
    };
    wait_until_ddl_has(&db, &table);
    let mut other = db.begin(Isolation::ReadCommitted);
    assert!(table.is_current());
    assert!(reader.try_open(&table), "whoever has it keeps it");
    drop(reader);
    drop_it.join().unwrap().unwrap();
    assert!(!table.is_current() && !other.try_open(&table));
}

#[test]
fn an_old_snapshot_does_not_read_new_trees() {
    let db = database();
    sample(&db);
    create(&db, "u", vec![int("a")], vec![]);
    let mut reader = db.begin(Isolation::RepeatableRead);
    let u = block_on(reader.table("s", "u")).unwrap();
    assert!(rows_in(&mut reader, &u, 0, &KeyRange::all(), Direction::Forward).is_empty());
    block_on(db.drop_index(&cx(), "s", "t", "PRIMARY")).unwrap();
    let t = block_on(reader.table("s", "t")).unwrap();
    let error = t.scan(&mut reader, 0, &KeyRange::all(), Direction::Forward).err().unwrap();
    assert_eq!(error.code, 1412);
    block_on(reader.commit()).unwrap();
    let mut reader = db.begin(Isolation::RepeatableRead);
    assert_eq!(rows_in(&mut reader, &t, 0, &KeyRange::all(), Direction::Forward).len(), 500);
}

#[test]
fn kill_stops_a_copy() {
    let db = database();
    let t = sample(&db);
    let mut plan = AlterPlan::of(&t);
    plan.convert_rows = true;
    let cx = cx();
    let interrupt = cx.interrupt.clone();
    let error = block_on(db.alter_table(&cx, plan, &mut |row| {
        interrupt.raise();
        Ok(row)
    }))
    .map(|_| ());
    // The table may be copied before the flag is looked at; it must be whole either way.
    if let Err(error) = error {
        assert_eq!(error.code, 1317);
    }
    assert_eq!(all(&db, &table(&db, "t")).len(), 500);
    check(&db);
}

/// Rows whose third column is long, and comes in another order than they do. It differs at its beginning: what a page's keys begin with is there once.
fn long_row(id: i64) -> Vec<Value> {
    vec![i(id), i(id % 7), t(&format!("{:05}{:0>175}", id * 7919 % 20_011, ""))]
}

/// So many rows that threads share them.
fn long_table(db: &Arc<Database>, rows: i64) -> Arc<Table> {
    let columns = vec![int("id").not_null(), int("k"), varchar("s", 200)];
    let table = create(db, "t", columns, vec![IndexSpec::primary(&[0])]);
    for first in (0..rows).step_by(2_000) {
        fill(db, &table, (first..(first + 2_000).min(rows)).map(long_row).collect());
    }
    table
}

/// One that is small enough to be logged, and some that are not.
fn add_indexes(db: &Arc<Database>, cx: &DdlContext, copy: bool) -> Result<(), MySqlError> {
    let mut plan = AlterPlan::of(&table(db, "t"));
    plan.convert_rows = copy;
    plan.spec.indexes.extend([
        IndexSpec::ordinary("k", &[1]),
        IndexSpec::unique("s", &[2]),
        IndexSpec::ordinary("k_s", &[1, 2]),
        IndexSpec::unique("s_id", &[2, 0]),
    ]);
    block_on(db.alter_table(cx, plan, &mut |row| Ok(row))).map(drop)
}

#[test]
fn threads_build_the_indexes_that_one_builds() {
    let db = database();
    long_table(&db, 12_000);
    let mut pictures = Vec::new();
    for copy in [false, true] {
        for (threads, memory) in [(1, 256 << 20), (3, 256 << 20), (3, 1 << 20), (1, 300 << 10)] {
            let cx = DdlContext { threads, memory, ..cx() };
            add_indexes(&db, &cx, copy).unwrap();
            check(&db);
            let t = table(&db, "t");
            let picture = t.indexes()[1..].iter().zip(1..).map(|(index, at)| {
                let levels = db.engine().levels(index.id, &|| false).unwrap().unwrap();
                let levels: Vec<_> = levels.iter().map(|level| (level.pages, level.records, level.used_bytes)).collect();
                (index.name.clone(), levels, rows(&db, &t, at, &KeyRange::all(), Direction::Forward))
            });
            pictures.push(picture.collect::<Vec<_>>());
            assert_eq!(all(&db, &t).len(), 12_000);
            let mut plan = AlterPlan::of(&t);
            plan.spec.indexes.truncate(1);
            alter(&db, plan).unwrap();
        }
    }
    // What is loaded has the same pages; what is logged may have other ones.
    let first = pictures.remove(0);
    let is_logged = |name: &str| name == "k";
    for (name, levels, _) in &first {
        assert!(is_logged(name) || levels[0].0 > 50, "{name}: {levels:?}");
    }
    for other in pictures {
        for ((name, was, rows_then), (same, is, rows_now)) in first.iter().zip(&other) {
            assert_eq!(name, same);
            assert!(rows_then == rows_now, "rows of index {name}");
            assert!(is_logged(name) || was == is, "{name}: {was:?} {is:?}");
        }
    }
}

#[test]
fn threads_find_the_duplicate_that_one_finds() {
    let db = database();
    let t = long_table(&db, 12_000);
    let trees = db.engine().indexes().len();
    // Of the index `s` three pairs, of others none; equal by collation, and told apart by the message.
    let text = |start: &str| common::t(&format!("{start}{:0>170}", ""));
    let pairs = [(20_000, "xB"), (20_001, "Xb"), (20_002, "xa"), (20_003, "XA"), (20_004, "z"), (20_005, "Z")];
    fill(&db, &t, pairs.iter().map(|&(id, start)| vec![i(id), i(1), text(start)]).collect());
    for copy in [false, true] {
        let found: Vec<MySqlError> = [(1, 256 << 20), (3, 256 << 20), (3, 1 << 20)]
            .into_iter()
            .map(|(threads, memory)| add_indexes(&db, &DdlContext { threads, memory, ..cx() }, copy).unwrap_err())
            .collect();
        assert_eq!(found[0].code, 1062);
        assert!(found[0].message.starts_with("Duplicate entry 'XA0000") && found[0].message.ends_with("for key 's'"), "{}", found[0].message);
        assert!(found.iter().all(|error| *error == found[0]), "{found:?}");
        wait_for_trees(&db, trees);
    }
    let mut plan = AlterPlan::of(&table(&db, "t"));
    plan.spec.indexes[0] = IndexSpec::primary(&[2]);
    plan.spec.indexes.push(IndexSpec::unique("s", &[2]));
    let by_key = |threads| block_on(db.alter_table(&DdlContext { threads, ..cx() }, plan.clone(), &mut |row| Ok(row))).unwrap_err();
    assert_eq!(by_key(1).code, 1062);
    assert!(by_key(1).message.ends_with("for key 'PRIMARY'"));
    assert_eq!(by_key(3), by_key(1));
    assert_eq!(all(&db, &table(&db, "t")).len(), 12_006);
    check(&db);
}

#[test]
fn kill_stops_threads_that_build() {
    let db = database();
    long_table(&db, 12_000);
    let trees = db.engine().indexes().len();
    for stage in [Stage::CopyingRows, Stage::BuildingIndexes] {
        let cx = DdlContext { threads: 3, ..cx() };
        let done = std::sync::atomic::AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while cx.progress.stage() != stage && !done.load(std::sync::atomic::Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                cx.interrupt.raise();
            });
            let result = add_indexes(&db, &cx, false);
            done.store(true, std::sync::atomic::Ordering::SeqCst);
            result
        });
        // It may be done before the flag is looked at; it is all or nothing.
        if let Err(error) = result {
            assert_eq!(error.code, 1317);
            wait_for_trees(&db, trees);
        } else {
            let mut plan = AlterPlan::of(&table(&db, "t"));
            plan.spec.indexes.truncate(1);
            alter(&db, plan).unwrap();
        }
        check(&db);
    }
}
