"""PyMySQL, mysqlclient, mysql-connector-python (pure and C) and SQLAlchemy against a server: clients.py PORT.

Prints "ok NAME" or "FAIL NAME: why" for each check. What needs C code, mysqlclient and the C extension, is left out where it is not installed.
"""

import contextlib
import datetime
import decimal
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

import mysql.connector
import pymysql
import sqlalchemy as sa

PORT = int(sys.argv[1])
DATABASE = "clients_py"
PASSWORDS = {"sha": "s3cret$", "native": "p@w", "empty": ""}


def pure(tls, **options):
    return mysql.connector.connect(port=PORT, host="127.0.0.1", use_pure=True, ssl_disabled=not tls, allow_local_infile=True, **options)


def c_extension(tls, **options):
    return mysql.connector.connect(port=PORT, host="127.0.0.1", use_pure=False, ssl_disabled=not tls, allow_local_infile=True, **options)


def py_mysql(tls, **options):
    ssl = {"check_hostname": False, "verify_mode": False} if tls else None
    return pymysql.connect(port=PORT, host="127.0.0.1", local_infile=True, ssl=ssl, ssl_disabled=not tls, **options)


CLIENTS = {"pymysql": py_mysql, "connector": pure}
if mysql.connector.HAVE_CEXT:
    CLIENTS["connector-c"] = c_extension
with contextlib.suppress(ImportError):
    import MySQLdb

    def mysqlclient(tls, **options):
        return MySQLdb.connect(port=PORT, host="127.0.0.1", local_infile=True, charset="utf8mb4", ssl_mode="REQUIRED" if tls else "DISABLED", **options)

    CLIENTS["mysqlclient"] = mysqlclient


@contextlib.contextmanager
def check(name):
    try:
        yield
        print("ok", name)
    except Exception as e:
        print(f"FAIL {name}: {type(e).__name__}: {e}".replace("\n", " "))


def want(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what} {got!r:.300} instead of {expected!r:.300}")


@contextlib.contextmanager
def fails(number):
    try:
        yield
    except Exception as e:
        want(getattr(e, "errno", e.args[0]), number, str(e))
    else:
        raise AssertionError(f"no error {number}")


def rows(connection, sql, args=()):
    cursor = connection.cursor()
    cursor.execute(sql, args)
    got = [tuple(r) for r in cursor.fetchall()] if cursor.description else cursor.rowcount
    cursor.close()
    return got


def accounts(name, connect):
    for tls in (False, True):
        how = f"{name} {'tls' if tls else 'clear'}"
        for user, password in PASSWORDS.items():
            with check(f"{how} connect {user}"):
                c = connect(tls, user=f"py_{user}", password=password, database=DATABASE)
                want(bool(rows(c, "SHOW STATUS LIKE 'Ssl_cipher'")[0][1]), tls, "encrypted")
                c.close()
        with check(f"{how} wrong password"):
            for user in (*PASSWORDS, "nobody"):
                with fails(1045):
                    connect(tls, user=f"py_{user}", password="wrong")
    with check(f"{name} unknown database"), fails(1049):
        connect(False, user="root", database="clients_nowhere")


COLUMNS = (
    "ti TINYINT, ut TINYINT UNSIGNED, m MEDIUMINT, b BIGINT, ub BIGINT UNSIGNED, f FLOAT, d DOUBLE, dc DECIMAL(65,30), c CHAR(5), v VARCHAR(50), bn BINARY(3), vb VARBINARY(9), "
    "tx TEXT, bl LONGBLOB, dt DATE, tm TIME(6), dtm DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR, e ENUM('x','y'), js JSON"
)
VALUES = (
    -128, 255, -8388608, -(2**63), 2**64 - 1, 1.5, 2.5e-300, decimal.Decimal("-" + "9" * 35 + "." + "1" * 30), "abc", "é😀'\\\n", b"\x01\x00", b"\xff\x00'", "text", bytes(range(256)) * 300,
    datetime.date(2024, 2, 29), datetime.timedelta(hours=-30, microseconds=5), datetime.datetime(2024, 2, 29, 23, 59, 58, 123456),
    datetime.datetime(2024, 2, 29, 1, 2, 3, 250000), 2024, "y", '{"a": [1, null]}',
)


def types(connection):
    cursor = connection.cursor()
    cursor.execute("DROP TABLE IF EXISTS types")
    cursor.execute(f"CREATE TABLE types (id INT AUTO_INCREMENT PRIMARY KEY, {COLUMNS})")
    insert = f"INSERT INTO types VALUES (NULL{', %s' * len(VALUES)})"
    cursor.execute(insert, VALUES)
    want(cursor.lastrowid, 1, "insert id")
    cursor.execute(insert, (None,) * len(VALUES))
    connection.commit()
    cursor.execute("SELECT * FROM types WHERE id IN (%s, %s) ORDER BY id", (1, 2))
    names = [d[0] for d in cursor.description]
    one, two = cursor.fetchall()
    for name, got, put in zip(names[1:], one[1:], VALUES):
        if name == "bn":
            put = put.ljust(3, b"\0")
        if name in ("bn", "vb", "bl"):
            got = bytes(got)
        if name == "js":
            got, put = json.loads(got), json.loads(put)
        want(got, put, name)
    want(two[1:], (None,) * len(VALUES), "NULLs")
    cursor.close()


def errors(connection):
    rows(connection, "CREATE TABLE err (id INT PRIMARY KEY, v VARCHAR(3) NOT NULL)")
    rows(connection, "INSERT INTO err VALUES (1, 'a')")
    for sql, number in (
        ("SELEC 1", 1064), ("SELECT * FROM nowhere", 1146), ("SELECT nothing FROM err", 1054), ("INSERT INTO err VALUES (1, 'b')", 1062),
        ("INSERT INTO err VALUES (2, 'long')", 1406), ("INSERT INTO err VALUES (2, NULL)", 1048), ("INSERT INTO err (id) VALUES (2)", 1364),
        ("INSERT INTO err VALUES (1 << 40, 'a')", 1264), ("CREATE TABLE err (id INT)", 1050), ("DROP TABLE nowhere", 1051), ("SELECT ~0 + 1", 1690),
    ):
        with fails(number):
            rows(connection, sql)
    rows(connection, "INSERT IGNORE INTO err VALUES (3, 'long')")
    want(rows(connection, "SHOW WARNINGS"), [("Warning", 1265, "Data truncated for column 'v' at row 1")])


def transactions(connection):
    rows(connection, "CREATE TABLE tx (id INT PRIMARY KEY)")
    for sql in ("INSERT INTO tx VALUES (1)", "SAVEPOINT a", "INSERT INTO tx VALUES (2)", "ROLLBACK TO a", "INSERT INTO tx VALUES (3)"):
        rows(connection, sql)
    connection.commit()
    rows(connection, "DELETE FROM tx")
    connection.rollback()
    want(rows(connection, "SELECT id FROM tx ORDER BY id"), [(1,), (3,)])


def batch(connection):
    rows(connection, "CREATE TABLE many (id INT PRIMARY KEY, v VARCHAR(200))")
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO many VALUES (%s, %s)", [(i, f"{i:0150}") for i in range(10000)])
    want(cursor.rowcount, 10000, "inserted")
    connection.commit()
    cursor.execute("SELECT * FROM many ORDER BY id")
    for i in range(10000):
        want(cursor.fetchone(), (i, f"{i:0150}"))
    want(cursor.fetchone(), None)
    cursor.close()


def load(connection):
    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        file.write('1,"x,y"\n2,\\N\n3,é\n')
        file.flush()
        os.chmod(file.name, 0o644)
        rows(connection, "CREATE TABLE loaded (a INT, b VARCHAR(20))")
        rows(connection, f"LOAD DATA INFILE '{file.name}' INTO TABLE loaded CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'")
    connection.commit()
    want(rows(connection, "SELECT * FROM loaded ORDER BY a"), [(1, "x,y"), (2, None), (3, "é")])


def prepared(connection):
    rows(connection, "CREATE TABLE prepared (id INT, t VARCHAR(20), d DOUBLE, n DECIMAL(9,2), w DATETIME, b BLOB)")
    cursor = connection.cursor(prepared=True)
    put = (7, "é", 2.5, decimal.Decimal("1.25"), datetime.datetime(2024, 2, 29, 1, 2, 3), b"\x00\xff")
    for values in (put, (None,) * len(put)):
        cursor.execute("INSERT INTO prepared VALUES (%s, %s, %s, %s, %s, %s)", values)
    cursor.execute("SELECT * FROM prepared WHERE id = %s", (7,))
    want([(*r[:5], bytes(r[5])) for r in cursor.fetchall()], [put])
    cursor.execute("SELECT COUNT(*) FROM prepared WHERE id IS NULL AND b IS NULL AND %s", (1,))
    want(cursor.fetchall(), [(1,)])
    # One statement, parameters of other types each time: what the result is depends on them.
    for given, sum_, text in ((5, 6, "5"), (1.5, 2.5, "1.5"), ("4", 5, "4"), (None, None, None)):
        cursor.execute("SELECT %s + 1, CONCAT(%s, ''), %s", (given, given, given))
        want(cursor.fetchall(), [(sum_, text, given)])
    cursor.close()


def resets(connection):
    connection.cmd_reset_connection()
    rows(connection, "SET @a = 1")
    connection.cmd_reset_connection()
    want(rows(connection, "SELECT @a, DATABASE()"), [(None, DATABASE)])
    connection.cmd_change_user("py_native", PASSWORDS["native"], DATABASE)
    want(rows(connection, "SELECT CURRENT_USER()"), [("py_native@%",)])
    connection.cmd_change_user("py_sha", PASSWORDS["sha"], DATABASE)
    want(rows(connection, "SELECT CURRENT_USER()"), [("py_sha@%",)])


def alchemy(driver):
    engine = sa.create_engine(f"mysql+{driver}://root@127.0.0.1:{PORT}/{DATABASE}", pool_pre_ping=True)
    metadata = sa.MetaData()
    books = sa.Table(
        "books", metadata,
        sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("title", sa.String(40), nullable=False, unique=True, comment="its name"),
        sa.Column("price", sa.Numeric(8, 2), server_default="1.50"), sa.Column("added", sa.DateTime, server_default=sa.func.now()), sa.Column("data", sa.JSON),
        sa.Column("sort", sa.Enum("novel", "poem")), sa.CheckConstraint("price > 0", name="dear"), sa.Index("by_price", "price", "title"), comment="on the shelf",
    )
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(books.insert(), [{"title": "a", "data": {"x": [1]}, "sort": "poem"}, {"title": "b", "data": None, "sort": None}])
        with contextlib.suppress(ZeroDivisionError), c.begin_nested():
            c.execute(books.delete())
            raise ZeroDivisionError
        want([tuple(r) for r in c.execute(sa.select(books.c.title, books.c.price, books.c.data).order_by(books.c.id))],
             [("a", decimal.Decimal("1.50"), {"x": [1]}), ("b", decimal.Decimal("1.50"), None)])
    inspector = sa.inspect(engine)
    want("books" in inspector.get_table_names(), True)
    columns = inspector.get_columns("books")
    want([(x["name"], str(x["type"]), x["nullable"]) for x in columns[:-1]],
         [("id", "BIGINT", False), ("title", "VARCHAR(40)", False), ("price", "DECIMAL(8, 2)", True), ("added", "DATETIME", True), ("data", "JSON", True)])
    want(columns[-1]["type"].enums, ["novel", "poem"])
    want((columns[1]["comment"], columns[2]["default"]), ("its name", "'1.50'"))
    want(inspector.get_pk_constraint("books")["constrained_columns"], ["id"])
    want(sorted((x["name"], tuple(x["column_names"]), x["unique"]) for x in inspector.get_indexes("books")), [("by_price", ("price", "title"), False), ("title", ("title",), True)])
    want([x["name"] for x in inspector.get_unique_constraints("books")], ["title"])
    want(inspector.get_foreign_keys("books"), [])
    want(inspector.get_table_comment("books"), {"text": "on the shelf"})
    metadata.drop_all(engine)
    want(sa.inspect(engine).has_table("books"), False)
    engine.dispose()


def command_line(directory):
    """The mariadb command line, on a terminal, draws a bar of a long statement and then tells its end. `directory`: where LOAD DATA may read."""
    rows(py_mysql(False, user="root", database=DATABASE, autocommit=True), "CREATE TABLE slow (a INT)")
    process, terminal = pty.fork()
    if process == 0:
        os.execvp("mariadb", ["mariadb", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", f"--port={PORT}", "--user=root", DATABASE])
    said = b""

    def until(text):
        nonlocal said
        deadline = time.monotonic() + 60
        while text not in said:
            want(time.monotonic() < deadline, True, f"{text} in {said}")
            if select.select([terminal], [], [], 1)[0]:
                said += os.read(terminal, 65536)
        said = said.partition(text)[2]

    with tempfile.NamedTemporaryFile("w", dir=directory) as file:
        file.write("1\n" * 150)
        file.flush()
        until(b"> ")
        os.write(terminal, b"SET progress_report_time = 1;\n")
        until(b"Query OK")
        load = f"LOAD DATA INFILE '{file.name}' INTO TABLE slow (@a) SET a = @a + SLEEP(0.02);\n"
        os.write(terminal, load.encode())
        until(b"Stage: 1 of 2 'reading file'")
        until(b"100% of stage done")
        until(b"Query OK, 150 rows affected")
    os.write(terminal, b"exit\n")
    want(os.waitpid(process, 0)[1], 0)


def dump_of_all():
    """mariadb-dump goes through everything, the server's own schemas too, and has the accounts."""
    options = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", f"--port={PORT}", "--user=root", "--all-databases", "--routines", "--events", "--triggers", "--single-transaction"]
    dump = subprocess.run(["mariadb-dump", *options], capture_output=True, text=True, errors="replace")
    want((dump.returncode, dump.stderr), (0, ""))
    for table in ("columns_priv", "db", "default_roles", "global_grants", "procs_priv", "proxies_priv", "role_edges", "tables_priv", "user"):
        want(f"CREATE TABLE `{table}` (" in dump.stdout, True, table)
    want("'py_native'," in dump.stdout and "'mysql.sys'," in dump.stdout, True, "accounts")


def binary_log(connection):
    """python-mysql-replication reads the rows of every type as they change."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    rows(
        connection,
        "CREATE TABLE followed (id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, su SMALLINT UNSIGNED, mi MEDIUMINT, bu BIGINT UNSIGNED, d DECIMAL(20,5), f FLOAT,"
        " db DOUBLE, c CHAR(10), v VARCHAR(300), b VARBINARY(20), tx TEXT, bl BLOB, da DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(2), e ENUM('a','b'),"
        " s SET('x','y','z'), j JSON, bt BIT(12))",
    )
    file, position = rows(connection, "SHOW MASTER STATUS")[0][:2]
    rows(
        connection,
        "INSERT INTO followed VALUES (1, -5, 65000, -8000000, 18446744073709551615, -12345.67891, 1.5, 2.25, 'chár', 'väl', x'00ff', 'text', 'blob', '2026-11-22',"
        " '2026-11-22 01:02:03.456789', '2026-11-22 01:02:03.5', '-12:34:56', 'b', 'x,z', '{\"a\": [1, 2.5, null, \"x\"]}', b'101010101010')",
    )
    rows(connection, "INSERT INTO followed (ti) VALUES (NULL)")
    rows(connection, "UPDATE followed SET v = 'new' WHERE id = 1")
    rows(connection, "DELETE FROM followed WHERE id = 2")
    settings = {"host": "127.0.0.1", "port": PORT, "user": "root", "passwd": ""}
    events = [WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent]
    stream = BinLogStreamReader(settings, server_id=4711, log_file=file, log_pos=position, resume_stream=True, only_events=events)
    seen = [(type(event).__name__, row) for event in stream for row in event.rows]
    stream.close()
    want([name for name, _ in seen], ["WriteRowsEvent", "WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent"])
    first = {
        "id": 1, "ti": -5, "su": 65000, "mi": -8000000, "bu": 18446744073709551615, "d": decimal.Decimal("-12345.67891"), "f": 1.5, "db": 2.25, "c": "chár", "v": "väl",
        "b": b"\x00\xff", "tx": "text", "bl": b"blob", "da": datetime.date(2026, 11, 22), "dt": datetime.datetime(2026, 11, 22, 1, 2, 3, 456789),
        "ts": datetime.datetime(2026, 11, 22, 1, 2, 3, 500000), "tm": -datetime.timedelta(hours=12, minutes=34, seconds=56), "e": "b", "s": {"x", "z"},
        "j": {b"a": [1, 2.5, None, b"x"]}, "bt": "101010101010",
    }
    want(seen[0][1]["values"], first)
    want(seen[1][1]["values"], {**dict.fromkeys(first), "id": 2})
    want((seen[2][1]["before_values"], seen[2][1]["after_values"]), (first, {**first, "v": "new"}))
    want(seen[3][1]["values"]["id"], 2)


def main():
    root = py_mysql(False, user="root", autocommit=True)
    for sql in (
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", "DROP USER IF EXISTS py_sha, py_native, py_empty",
        "CREATE USER py_sha IDENTIFIED WITH caching_sha2_password BY 's3cret$'", "CREATE USER py_native IDENTIFIED WITH mysql_native_password BY 'p@w'",
        "CREATE USER py_empty", "GRANT ALL ON *.* TO py_sha, py_native, py_empty",
    ):
        rows(root, sql)
    for name, connect in CLIENTS.items():
        accounts(name, connect)
        rows(root, f"DROP DATABASE {DATABASE}")
        rows(root, f"CREATE DATABASE {DATABASE}")
        c = connect(False, user="root", database=DATABASE)
        for about, body in {"every type there and back": types, "transactions and savepoints": transactions, "errors and warnings": errors, "batch insert, large result": batch, "load data local infile": load}.items():
            with check(f"{name} {about}"):
                body(c)
        if name.startswith("connector"):
            with check(f"{name} prepared statements"):
                prepared(c)
            with check(f"{name} reset and change user"):
                resets(c)
        c.close()
    with check("pymysql unbuffered cursor, multi statements"):
        c = py_mysql(False, user="root", database=DATABASE, client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
        cursor = c.cursor(pymysql.cursors.SSCursor)
        cursor.execute("SELECT id FROM many ORDER BY id; SELECT 'x'")
        want([r[0] for r in cursor], list(range(10000)))
        want(cursor.nextset(), True)
        want(cursor.fetchall(), [("x",)])
        c.close()
    with check("pymysql latin1, time zone"):
        c = py_mysql(False, user="root", charset="latin1", init_command="SET time_zone = '+05:00'")
        want(rows(c, "SELECT 'é', HEX('é'), FROM_UNIXTIME(0)"), [("é", "E9", datetime.datetime(1970, 1, 1, 5))])
        c.close()
    for driver in ("pymysql", "mysqlconnector", *(["mysqldb"] if "mysqlclient" in CLIENTS else [])):
        with check(f"sqlalchemy {driver}"):
            alchemy(driver)
    if rows(root, "SELECT @@log_bin AND @@binlog_row_metadata = 'FULL'")[0][0]:
        with check("python-mysql-replication follows the binary log"):
            c = py_mysql(False, user="root", database=DATABASE, init_command="SET time_zone = '+00:00'", autocommit=True)
            binary_log(c)
            c.close()
    if shutil.which("mariadb-dump"):
        with check("mariadb-dump of all databases"):
            dump_of_all()
    directory = rows(root, "SELECT @@secure_file_priv")[0][0]
    if shutil.which("mariadb") and directory and rows(root, "SHOW VARIABLES LIKE 'progress_report_time'"):
        with check("mariadb command line draws progress"):
            command_line(directory)
    rows(root, f"DROP DATABASE {DATABASE}")
    rows(root, "DROP USER py_sha, py_native, py_empty")


main()
