import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.time.LocalDateTime;
import java.util.*;

/** Connector/J and MariaDB Connector/J against a server: Clients PORT. Prints "ok NAME" or "FAIL NAME: why" for each check. */
public class Clients {
    interface Check { void run() throws Exception; }

    static String port, driver;

    static void check(String name, Check body) {
        try {
            body.run();
            System.out.println("ok " + driver + " " + name);
        } catch (Throwable e) {
            System.out.println("FAIL " + driver + " " + name + ": " + e);
        }
    }

    static void want(String what, Object got, Object expected) {
        if (!Objects.deepEquals(got, expected)) {
            throw new AssertionError(what + " is " + got + (got == null ? "" : " (" + got.getClass() + ")") + ", not " + expected);
        }
    }

    static void fails(int number, String state, Check body) throws Exception {
        try {
            body.run();
        } catch (SQLException e) {
            // Connector/J has its own state for this number.
            String expected = number == 1264 && driver.equals("mysql") ? "22001" : state;
            want("error (" + e.getMessage() + ")", e.getErrorCode() + " " + e.getSQLState(), number + " " + expected);
            return;
        }
        throw new AssertionError("no error " + number);
    }

    static Connection open(String user, String password, String database, String options) throws SQLException {
        return DriverManager.getConnection("jdbc:" + driver + "://127.0.0.1:" + port + "/" + database + "?allowMultiQueries=true&" + options, user, password);
    }

    static void run(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) {
            for (String sql : statements) s.execute(sql);
        }
    }

    static String one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getString(1);
        }
    }

    static String column(ResultSet r, String... names) throws SQLException {
        List<String> rows = new ArrayList<>();
        while (r.next()) {
            List<String> row = new ArrayList<>();
            for (String n : names) row.add(r.getString(n));
            rows.add(String.join(" ", row));
        }
        r.close();
        return String.join(", ", rows);
    }

    public static void main(String[] args) throws Exception {
        port = args[0];
        for (String d : new String[] {"mysql", "mariadb"}) {
            driver = d;
            all();
        }
    }

    static void all() throws Exception {
        boolean mysql = driver.equals("mysql");
        String clear = mysql ? "sslMode=DISABLED&allowPublicKeyRetrieval=true" : "sslMode=disable&allowPublicKeyRetrieval=true";
        String tls = mysql ? "sslMode=REQUIRED" : "sslMode=trust";
        try (Connection root = open("root", "", "", clear)) {
            run(root, "DROP DATABASE IF EXISTS clients_java", "CREATE DATABASE clients_java", "DROP USER IF EXISTS j_sha, j_native, j_empty",
                "CREATE USER j_sha IDENTIFIED WITH caching_sha2_password BY 'sécret'", "CREATE USER j_native IDENTIFIED WITH mysql_native_password BY 'p@w'",
                "CREATE USER j_empty", "GRANT ALL ON *.* TO j_sha, j_native, j_empty");
        }
        for (String options : new String[] {clear, tls}) {
            for (String[] user : new String[][] {{"j_sha", "sécret"}, {"j_native", "p@w"}, {"j_empty", ""}}) {
                check("connect " + user[0] + " " + options, () -> {
                    try (Connection c = open(user[0], user[1], "clients_java", options)) {
                        want("user", one(c, "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"), user[0]);
                        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SHOW STATUS LIKE 'Ssl_cipher'")) {
                            r.next();
                            want("encrypted", !r.getString(2).isEmpty(), options.equals(tls));
                        }
                    }
                });
            }
            check("wrong password " + options, () -> {
                for (String user : new String[] {"j_sha", "j_native", "j_empty", "j_nobody"}) fails(1045, "28000", () -> open(user, "wrong", "clients_java", options));
            });
        }
        check("unknown database", () -> fails(1049, "42000", () -> open("root", "", "clients_nowhere", clear)));
        for (String options : new String[] {"", "useServerPrepStmts=true&rewriteBatchedStatements=true"}) {
            try (Connection c = open("root", "", "clients_java", clear + "&allowLoadLocalInfile=true&allowLocalInfile=true&" + options)) {
                String suffix = options.isEmpty() ? "" : " (server prepared)";
                run(c, "DROP DATABASE clients_java", "CREATE DATABASE clients_java", "USE clients_java");
                check("every type there and back" + suffix, () -> types(c));
                check("transactions and savepoints" + suffix, () -> transactions(c));
                check("batches and generated keys" + suffix, () -> batches(c));
                check("errors and warnings" + suffix, () -> errors(c));
                check("streamed result" + suffix, () -> streamed(c));
                check("multi statements" + suffix, () -> multi(c));
                check("load data local infile" + suffix, () -> load(c));
                check("updatable result" + suffix, () -> updatable(c));
                check("metadata" + suffix, () -> metadata(c));
            }
        }
        check("cursor fetch", () -> {
            try (Connection c = open("root", "", "clients_java", clear + "&useCursorFetch=true&useServerPrepStmts=true")) {
                try (PreparedStatement p = c.prepareStatement("SELECT id, v FROM many WHERE id > ? ORDER BY id")) {
                    p.setFetchSize(100);
                    p.setInt(1, 10);
                    try (ResultSet r = p.executeQuery()) {
                        int n = 10;
                        while (r.next()) want("row", r.getInt(1), ++n);
                        want("rows", n, 5000);
                    }
                }
            }
        });
        check("time zone", () -> {
            String zone = mysql ? "&connectionTimeZone=%2B05:00&forceConnectionTimeZoneToSession=true" : "&timezone=+05:00";
            try (Connection c = open("root", "", "clients_java", clear + zone)) {
                want("zone", one(c, "SELECT @@time_zone"), "+05:00");
                want("time", one(c, "SELECT FROM_UNIXTIME(0)"), "1970-01-01 05:00:00");
            }
        });
        if (mysql) {
            check("change user and reset", () -> {
                try (Connection c = open("root", "", "clients_java", clear)) {
                    com.mysql.cj.jdbc.JdbcConnection j = c.unwrap(com.mysql.cj.jdbc.JdbcConnection.class);
                    run(c, "SET @a = 1, SESSION lock_wait_timeout = 7");
                    j.resetServerState();
                    want("variable", one(c, "SELECT @a"), null);
                    j.changeUser("j_native", "p@w");
                    want("user", one(c, "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"), "j_native");
                    j.changeUser("j_sha", "sécret");
                    want("user", one(c, "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"), "j_sha");
                }
            });
        }
        try (Connection root = open("root", "", "", clear)) {
            run(root, "DROP DATABASE clients_java", "DROP USER j_sha, j_native, j_empty");
        }
    }

    static void types(Connection c) throws Exception {
        run(c, "CREATE TABLE types (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, ti TINYINT, ub BIGINT UNSIGNED, f FLOAT, d DOUBLE, dc DECIMAL(30,10), c CHAR(5), "
            + "v VARCHAR(20), vb VARBINARY(9), tx TEXT, bl LONGBLOB, dt DATE, tm TIME, dtm DATETIME(6), ts TIMESTAMP NULL, y YEAR, e ENUM('x','y'), st SET('p','q'), js JSON, bi BIT(12), bo BOOLEAN)");
        byte[] blob = new byte[100000];
        for (int i = 0; i < blob.length; i++) blob[i] = (byte) i;
        LocalDateTime when = LocalDateTime.of(2024, 2, 29, 23, 59, 58, 123456000);
        String insert = "INSERT INTO types (ti,ub,f,d,dc,c,v,vb,tx,bl,dt,tm,dtm,ts,y,e,st,js,bi,bo) VALUES (" + "?,".repeat(19) + "?)";
        try (PreparedStatement p = c.prepareStatement(insert)) {
            p.setByte(1, (byte) -128);
            p.setBigDecimal(2, new BigDecimal("18446744073709551615"));
            p.setFloat(3, 1.5f);
            p.setDouble(4, 2.5e-300);
            p.setBigDecimal(5, new BigDecimal("-12345678901234567890.0123456789"));
            p.setString(6, "abc");
            p.setString(7, "é😀'\\");
            p.setBytes(8, new byte[] {-1, 0, '\''});
            p.setString(9, "text");
            p.setBinaryStream(10, new ByteArrayInputStream(blob), blob.length);
            p.setDate(11, java.sql.Date.valueOf("2024-02-29"));
            p.setTime(12, Time.valueOf("23:59:58"));
            p.setObject(13, when);
            p.setTimestamp(14, Timestamp.valueOf("2024-02-29 23:59:58"));
            p.setInt(15, 2155);
            p.setString(16, "y");
            p.setString(17, "p,q");
            p.setString(18, "{\"a\": [1, null]}");
            p.setBytes(19, new byte[] {0x0f, -1});
            p.setBoolean(20, true);
            want("inserted", p.executeUpdate(), 1);
            for (int i = 1; i <= 20; i++) p.setNull(i, Types.VARCHAR);
            want("inserted", p.executeUpdate(), 1);
        }
        try (PreparedStatement p = c.prepareStatement("SELECT * FROM types WHERE id = ?")) {
            p.setInt(1, 1);
            try (ResultSet r = p.executeQuery()) {
                want("a row", r.next(), true);
                want("id", r.getLong(1), 1L);
                want("tinyint", r.getByte(2), (byte) -128);
                want("bigint unsigned", r.getObject(3), new BigInteger("18446744073709551615"));
                want("float", r.getFloat(4), 1.5f);
                want("double", r.getDouble(5), 2.5e-300);
                want("decimal", r.getBigDecimal(6), new BigDecimal("-12345678901234567890.0123456789"));
                want("char", r.getString(7), "abc");
                want("varchar", r.getString(8), "é😀'\\");
                want("varbinary", r.getBytes(9), new byte[] {-1, 0, '\''});
                want("text", r.getString(10), "text");
                want("blob", r.getBytes(11), blob);
                want("date", r.getDate(12).toString(), "2024-02-29");
                want("time", r.getTime(13).toString(), "23:59:58");
                want("datetime", r.getObject(14, LocalDateTime.class), when);
                want("timestamp", r.getTimestamp(15).toString(), "2024-02-29 23:59:58.0");
                want("year", r.getInt(16), 2155);
                want("enum", r.getString(17), "y");
                want("set", r.getString(18), "p,q");
                want("json", r.getString(19), "{\"a\": [1, null]}");
                want("bit", r.getBytes(20), new byte[] {0x0f, -1});
                want("boolean", r.getBoolean(21), true);
                ResultSetMetaData m = r.getMetaData();
                want("signed", m.isSigned(1), false);
                want("auto", m.isAutoIncrement(1), true);
                want("precision", m.getPrecision(6) + "," + m.getScale(6), "30,10");
                want("table", m.getTableName(8), "types");
                want("nullable", m.isNullable(1) + " " + m.isNullable(2), "0 1");
            }
            p.setInt(1, 2);
            try (ResultSet r = p.executeQuery()) {
                r.next();
                for (int i = 2; i <= 21; i++) want("column " + i, r.getObject(i), null);
            }
        }
    }

    static void transactions(Connection c) throws Exception {
        run(c, "CREATE TABLE tx (id INT PRIMARY KEY)");
        c.setAutoCommit(false);
        try {
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ}) {
                c.setTransactionIsolation(level);
                want("isolation", c.getTransactionIsolation(), level);
            }
            run(c, "INSERT INTO tx VALUES (1)");
            Savepoint a = c.setSavepoint("a");
            run(c, "INSERT INTO tx VALUES (2)");
            c.rollback(a);
            run(c, "INSERT INTO tx VALUES (3)");
            c.commit();
            run(c, "DELETE FROM tx");
            c.rollback();
            want("rows", one(c, "SELECT GROUP_CONCAT(id ORDER BY id) FROM tx"), "1,3");
            c.commit();
            run(c, "SET TRANSACTION READ ONLY");
            fails(1792, "25006", () -> run(c, "DELETE FROM tx"));
            c.rollback();
        } finally {
            c.setAutoCommit(true);
        }
    }

    static void batches(Connection c) throws Exception {
        run(c, "CREATE TABLE many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))");
        try (PreparedStatement p = c.prepareStatement("INSERT INTO many (v) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 1; i <= 5000; i++) {
                p.setString(1, "value " + i);
                p.addBatch();
                if (i % 1000 == 0) want("counts", p.executeBatch().length, 1000);
            }
            p.setString(1, "last");
            p.executeUpdate();
            try (ResultSet r = p.getGeneratedKeys()) {
                r.next();
                want("key", r.getLong(1), 5001L);
            }
        }
        run(c, "DELETE FROM many WHERE id = 5001");
        want("rows", one(c, "SELECT CONCAT(COUNT(*), ' ', SUM(v = CONCAT('value ', id))) FROM many"), "5000 5000");
    }

    static void errors(Connection c) throws Exception {
        run(c, "CREATE TABLE err (id INT PRIMARY KEY, v VARCHAR(3) NOT NULL)", "INSERT INTO err VALUES (1, 'a')");
        fails(1064, "42000", () -> run(c, "SELEC 1"));
        fails(1146, "42S02", () -> run(c, "SELECT * FROM nowhere"));
        fails(1054, "42S22", () -> run(c, "SELECT nothing FROM err"));
        fails(1062, "23000", () -> run(c, "INSERT INTO err VALUES (1, 'b')"));
        fails(1406, "22001", () -> run(c, "INSERT INTO err VALUES (2, 'long')"));
        fails(1048, "23000", () -> run(c, "INSERT INTO err VALUES (2, NULL)"));
        fails(1264, "22003", () -> run(c, "INSERT INTO err VALUES (1 << 40, 'a')"));
        try (Statement s = c.createStatement()) {
            s.execute("INSERT IGNORE INTO err VALUES (3, 'long')");
            SQLWarning w = s.getWarnings();
            want("warning", w == null ? null : w.getErrorCode() + " " + w.getMessage().contains("column 'v' at row 1"), "1265 true");
        }
    }

    static void streamed(Connection c) throws Exception {
        try (Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY)) {
            s.setFetchSize(driver.equals("mysql") ? Integer.MIN_VALUE : 10);
            try (ResultSet r = s.executeQuery("SELECT a.id, b.v FROM many a JOIN many b ON b.id BETWEEN a.id AND a.id + 9 WHERE a.id <= 4000")) {
                int n = 0;
                while (r.next()) n++;
                want("rows", n, 40000);
            }
        }
    }

    static void multi(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            want("a result", s.execute("SELECT 1; UPDATE err SET v = 'z' WHERE id = 1; SELECT 'x', 2"), true);
            want("no result", s.getMoreResults(), false);
            want("changed", s.getUpdateCount(), 1);
            want("a result", s.getMoreResults(), true);
            ResultSet r = s.getResultSet();
            r.next();
            want("value", r.getString(1) + r.getInt(2), "x2");
            want("no more", s.getMoreResults() || s.getUpdateCount() != -1, false);
        }
    }

    static void load(Connection c) throws Exception {
        Path file = Files.createTempFile("clients", ".csv");
        try {
            Files.write(file, "1,\"x,y\",2.50\n2,\\N,3\n".getBytes(StandardCharsets.UTF_8));
            run(c, "CREATE TABLE loaded (a INT, b VARCHAR(20), c DECIMAL(6,2))",
                "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE loaded FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'");
            want("rows", one(c, "SELECT GROUP_CONCAT(CONCAT_WS('|', a, IFNULL(b, 'NULL'), c) ORDER BY a) FROM loaded"), "1|x,y|2.50,2|NULL|3.00");
        } finally {
            Files.delete(file);
        }
    }

    static void updatable(Connection c) throws Exception {
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
            ResultSet r = s.executeQuery("SELECT id, v FROM err WHERE id = 1")) {
            want("a row", r.next(), true);
            r.updateString(2, "new");
            r.updateRow();
            r.moveToInsertRow();
            r.updateInt(1, 9);
            r.updateString(2, "ins");
            r.insertRow();
        }
        want("values", one(c, "SELECT GROUP_CONCAT(v ORDER BY id) FROM err WHERE id IN (1, 9)"), "new,ins");
    }

    static void metadata(Connection c) throws Exception {
        run(c, "CREATE TABLE meta (a INT UNSIGNED NOT NULL, b VARCHAR(10) NOT NULL DEFAULT 'x' COMMENT 'words', c DECIMAL(7,3), PRIMARY KEY (b, a), UNIQUE KEY u (c), KEY k (a, c)) COMMENT 'about'");
        DatabaseMetaData m = c.getMetaData();
        want("version", m.getDatabaseMajorVersion(), 8);
        want("catalogs", column(m.getCatalogs(), "TABLE_CAT").contains("clients_java"), true);
        want("tables", column(m.getTables("clients_java", null, "m%", new String[] {"TABLE"}), "TABLE_NAME", "TABLE_TYPE"), "many TABLE, meta TABLE");
        want("columns", column(m.getColumns("clients_java", null, "meta", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE", "COLUMN_DEF", "REMARKS", "ORDINAL_POSITION", "IS_AUTOINCREMENT"),
            driver.equals("mysql") ? "a INT UNSIGNED 10 null NO null  1 NO, b VARCHAR 10 null NO x words 2 NO, c DECIMAL 7 3 YES null  3 NO"
                : "a INT UNSIGNED 10 0 NO null  1 NO, b VARCHAR 10 null NO x words 2 NO, c DECIMAL 7 3 YES null  3 NO");
        want("primary key", column(m.getPrimaryKeys("clients_java", null, "meta"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), "a 2 PRIMARY, b 1 PRIMARY");
        want("indexes", column(m.getIndexInfo("clients_java", null, "meta", false, true), "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME", "NON_UNIQUE").toLowerCase().replace("false", "0").replace("true", "1"),
            "primary 1 b 0, primary 2 a 0, u 1 c 0, k 1 a 1, k 2 c 1");
        want("imported keys", column(m.getImportedKeys("clients_java", null, "meta"), "FKTABLE_NAME"), "");
        want("exported keys", column(m.getExportedKeys("clients_java", null, "meta"), "FKTABLE_NAME"), "");
        column(m.getProcedures("clients_java", null, "%"), "PROCEDURE_NAME");
        column(m.getFunctions("clients_java", null, "%"), "FUNCTION_NAME");
        column(m.getVersionColumns("clients_java", null, "meta"), "COLUMN_NAME");
        column(m.getBestRowIdentifier("clients_java", null, "meta", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME");
        column(m.getTypeInfo(), "TYPE_NAME");
    }
}
