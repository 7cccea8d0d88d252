import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Debezium's embedded engine follows changing tables: a snapshot, then the binary log, interrupted once. What it made of them in the end must be what
 * a new snapshot gives: every column, of every type, of every row. Run as `Follow PORT` against a server that writes its binary log.
 */
public class Follow {
    private static final String DATABASE = "followed";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** The rows of all tables as one engine knows them: table and key to row. */
    private static final class Follower implements AutoCloseable {
        final Map<String, String> rows = new ConcurrentHashMap<>();
        private final DebeziumEngine<ChangeEvent<String, String>> engine;
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        volatile String failure;
        volatile long changes;
        volatile boolean complete;

        Follower(int port, int serverId, Path home, String mode) {
            Properties p = new Properties();
            p.setProperty("name", "follow" + serverId);
            p.setProperty("connector.class", "io.debezium.connector.mysql.MySqlConnector");
            p.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
            p.setProperty("offset.storage.file.filename", home.resolve("offsets" + serverId).toString());
            p.setProperty("offset.flush.interval.ms", "0");
            p.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
            p.setProperty("schema.history.internal.file.filename", home.resolve("history" + serverId).toString());
            p.setProperty("database.hostname", "127.0.0.1");
            p.setProperty("database.port", Integer.toString(port));
            p.setProperty("database.user", "root");
            p.setProperty("database.password", "");
            p.setProperty("database.server.id", Integer.toString(serverId));
            p.setProperty("database.include.list", DATABASE);
            p.setProperty("database.connectionTimeZone", "UTC");
            p.setProperty("topic.prefix", "t");
            p.setProperty("snapshot.mode", mode);
            p.setProperty("decimal.handling.mode", "string");
            p.setProperty("bigint.unsigned.handling.mode", "precise");
            p.setProperty("converter.schemas.enable", "false");
            engine = DebeziumEngine.create(Json.class)
                .using(p)
                .using((success, message, error) -> failure = success ? null : message + (error == null ? "" : ": " + error))
                .notifying(this::take)
                .build();
            thread.execute(engine);
        }

        private void take(ChangeEvent<String, String> event) {
            if (event.value() == null || event.key() == null) {
                return;
            }
            try {
                JsonNode change = JSON.readTree(event.value());
                if (!change.has("op")) {
                    return;
                }
                String key = event.destination() + " " + event.key();
                if (change.get("op").asText().equals("d")) {
                    rows.remove(key);
                } else {
                    rows.put(key, plain(change.get("after")));
                }
                changes++;
                complete |= change.get("source").get("snapshot").asText().equals("last");
            } catch (Exception error) {
                failure = error.toString();
            }
        }

        /** JSON columns come as texts that differ in their blanks between a snapshot and the log, timestamps in their last zeros. */
        private static String plain(JsonNode row) throws Exception {
            JsonNode document = row.get("j");
            if (document != null && document.isTextual()) {
                ((ObjectNode) row).put("j", JSON.readTree(document.asText()).toString());
            }
            JsonNode moment = row.get("ts");
            if (moment != null && moment.isTextual()) {
                ((ObjectNode) row).put("ts", java.time.Instant.parse(moment.asText()).toString());
            }
            return row.toString();
        }

        void waitFor(String row) throws Exception {
            waitUntil(row, () -> rows.keySet().stream().anyMatch(key -> key.contains(row)));
        }

        void waitForSnapshot() throws Exception {
            waitUntil("end of the snapshot", () -> complete);
        }

        private void waitUntil(String what, BooleanSupplier reached) throws Exception {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
            while (!reached.getAsBoolean()) {
                if (failure != null) {
                    throw new IllegalStateException(failure);
                }
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("no " + what + " after 120 seconds and " + changes + " changes");
                }
                Thread.sleep(50);
            }
        }

        @Override
        public void close() throws Exception {
            engine.close();
            thread.shutdown();
            thread.awaitTermination(60, TimeUnit.SECONDS);
        }
    }

    private static Connection connect(int port) throws SQLException {
        return DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/?user=root&useSSL=false&allowPublicKeyRetrieval=true&connectionTimeZone=UTC");
    }

    private static void run(Connection connection, String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }

    private static final String[] TYPES = {
        "ti TINYINT", "tu TINYINT UNSIGNED", "si SMALLINT", "mi MEDIUMINT UNSIGNED", "i INT", "bi BIGINT", "bu BIGINT UNSIGNED", "de DECIMAL(30,9)",
        "f FLOAT", "d DOUBLE", "b BIT(13)", "y YEAR", "da DATE", "t TIME(6)", "dt DATETIME(3)", "ts TIMESTAMP(6) NULL", "c CHAR(20)",
        "v VARCHAR(300) CHARACTER SET latin1", "u VARCHAR(100)", "vb VARBINARY(300)", "tx TEXT", "bl MEDIUMBLOB", "e ENUM('red','green','blue')",
        "s SET('a','b','c','d')", "j JSON",
    };

    private static final String[] DOCUMENTS = {
        "{\"a\": 1, \"b\": [true, null, \"x\"]}", "[]", "\"text\"", "-17", "{\"deep\": {\"deeper\": {\"n\": 12345678901}}}", "[1.5, \"\u00e9\u4e2d\"]",
    };

    private static Object[] values(Random random) {
        Object[] all = {
            random.nextInt(256) - 128, random.nextInt(256), random.nextInt(65536) - 32768, random.nextInt(1 << 24), random.nextInt(), random.nextLong(),
            new java.math.BigDecimal(new java.math.BigInteger(64, random)), new java.math.BigDecimal(random.nextLong()).movePointLeft(9),
            random.nextInt(4000) / 4.0f, random.nextLong() / 1024.0, random.nextInt(1 << 13), 1901 + random.nextInt(255),
            String.format("%04d-%02d-%02d", 1000 + random.nextInt(9000), 1 + random.nextInt(12), 1 + random.nextInt(28)),
            String.format("%s%02d:%02d:%02d.%06d", random.nextBoolean() ? "-" : "", random.nextInt(800), random.nextInt(60), random.nextInt(60), random.nextInt(1000000)),
            String.format("%04d-%02d-%02d 12:%02d:01.%03d", 1000 + random.nextInt(9000), 1 + random.nextInt(12), 1 + random.nextInt(28), random.nextInt(60), random.nextInt(1000)),
            String.format("%04d-%02d-%02d 12:%02d:01.%06d", 1971 + random.nextInt(60), 1 + random.nextInt(12), 1 + random.nextInt(28), random.nextInt(60), random.nextInt(1000000)),
            text(random, 20, "abc"), text(random, 300, "\u00e9\u00fcxyz"), text(random, 100, "\u4e2d\u00e9z"), bytes(random, 300), text(random, 3000, "\u4e2dab "),
            bytes(random, 20000), random.nextBoolean() ? "green" : "blue", random.nextBoolean() ? "a,c" : "d", DOCUMENTS[random.nextInt(DOCUMENTS.length)],
        };
        for (int n = 0; n < all.length; n++) {
            all[n] = random.nextInt(8) == 0 ? null : all[n];
        }
        return all;
    }

    private static String text(Random random, int most, String letters) {
        StringBuilder text = new StringBuilder();
        for (int n = random.nextInt(most); n > 0; n--) {
            text.append(letters.charAt(random.nextInt(letters.length())));
        }
        return text.toString().stripTrailing();
    }

    private static byte[] bytes(Random random, int most) {
        byte[] bytes = new byte[random.nextInt(most)];
        random.nextBytes(bytes);
        return bytes;
    }

    private static int change(Connection connection, String sql, Object[] values, int id) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            int n = 1;
            for (Object value : values) {
                statement.setObject(n++, value);
            }
            statement.setInt(n, id);
            return statement.executeUpdate();
        }
    }

    /** Transactions of some changes, of which a few are rolled back. */
    private static void load(int port, int seed, int transactions) throws SQLException {
        Random random = new Random(seed);
        String names = String.join(", ", columns());
        String marks = "?, ".repeat(TYPES.length);
        String sets = String.join(" = ?, ", columns()) + " = ?";
        try (Connection connection = connect(port)) {
            run(connection, "USE " + DATABASE);
            connection.setAutoCommit(false);
            for (int n = 0; n < transactions; n++) {
                for (int changes = 1 + random.nextInt(5); changes > 0; changes--) {
                    // Keys of its own: no two sessions wait for each other.
                    int id = random.nextInt(200) * 4 + seed % 4;
                    switch (random.nextInt(4)) {
                        case 0 -> change(connection, "DELETE FROM things WHERE id = ?", new Object[0], id);
                        case 1 -> change(connection, "UPDATE things SET " + sets + " WHERE id = ?", values(random), id);
                        case 2 -> change(connection, "UPDATE things SET i = i / 2, e = 'red' WHERE id = ?", new Object[0], id);
                        default -> change(connection, "REPLACE INTO things (" + names + ", id) VALUES (" + marks + "?)", values(random), id);
                    }
                }
                if (random.nextInt(10) == 0) {
                    connection.rollback();
                } else {
                    connection.commit();
                }
            }
        }
    }

    private static List<String> columns() {
        List<String> names = new ArrayList<>();
        for (String type : TYPES) {
            names.add(type.split(" ")[0]);
        }
        return names;
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        Path home = Files.createTempDirectory("follow");
        try (Connection connection = connect(port)) {
            run(connection, "DROP DATABASE IF EXISTS " + DATABASE, "CREATE DATABASE " + DATABASE + " CHARACTER SET utf8mb4", "USE " + DATABASE,
                "CREATE TABLE things (id INT PRIMARY KEY, " + String.join(", ", TYPES) + ")",
                "CREATE TABLE many (a INT, b VARCHAR(40), n INT NOT NULL, PRIMARY KEY (b, a))", "CREATE TABLE marks (name VARCHAR(20) PRIMARY KEY)");
            load(port, 0, 100);
            Follower follower = new Follower(port, 4101, home, "initial");
            try {
                run(connection, "INSERT INTO marks VALUES ('first')");
                follower.waitFor("first");
                load(port, 1, 200);
                // Closed with much still to come, Debezium 2.7 waits for its own queue for ever.
                run(connection, "INSERT INTO marks VALUES ('second')");
                follower.waitFor("second");
            } finally {
                follower.close();
            }
            // What happens while nobody follows is in the log.
            load(port, 2, 200);
            run(connection, "ALTER TABLE things ADD COLUMN late VARCHAR(20) NOT NULL DEFAULT 'x' AFTER si, DROP COLUMN mi, MODIFY ti INT");
            run(connection, "UPDATE things SET late = CONCAT('late', id)", "RENAME TABLE many TO plenty",
                "SET SESSION cte_max_recursion_depth = 100000",
                "INSERT INTO plenty WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT n, REPEAT('k', n % 39), n FROM r",
                "UPDATE plenty SET n = -n, a = a + 100000 WHERE a % 2 = 0", "DELETE FROM plenty WHERE a % 5 = 0");
            Follower again = new Follower(port, 4101, home, "initial");
            again.rows.putAll(follower.rows);
            try (again) {
                run(connection, "INSERT INTO marks VALUES ('last')");
                again.waitFor("last");
            }
            Follower fresh = new Follower(port, 4102, home, "initial");
            try (fresh) {
                fresh.waitForSnapshot();
            }
            report(again.rows, fresh.rows, follower.changes + again.changes);
            run(connection, "DROP DATABASE " + DATABASE);
        } catch (Exception error) {
            error.printStackTrace();
            System.out.println("FAIL debezium: " + error);
        }
        System.exit(0);
    }

    private static void report(Map<String, String> followed, Map<String, String> fresh, long changes) {
        for (Map.Entry<String, String> row : fresh.entrySet()) {
            String other = followed.get(row.getKey());
            if (!row.getValue().equals(other)) {
                System.out.println("FAIL debezium: " + row.getKey() + " is " + row.getValue() + ", followed: " + other);
                return;
            }
        }
        boolean enough = fresh.size() > 16000 && changes > 30000;
        boolean same = followed.size() == fresh.size();
        System.out.println((enough && same ? "ok" : "FAIL") + " debezium: " + changes + " changes, " + followed.size() + " rows, of a new snapshot " + fresh.size());
    }
}
