// go-sql-driver/mysql against a server: main PORT. Prints "ok NAME" or "FAIL NAME: why" for each check.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

var port = os.Args[1]

func dsn(user, options string) string {
	return fmt.Sprintf("%s@tcp(127.0.0.1:%s)/%s", user, port, options)
}

func open(user, options string) (*sql.DB, error) {
	db, err := sql.Open("mysql", dsn(user, options))
	if err != nil {
		return nil, err
	}
	return db, db.Ping()
}

func check(name string, body func() error) {
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return body()
	}()
	if err != nil {
		fmt.Printf("FAIL go %s: %v\n", name, err)
	} else {
		fmt.Printf("ok go %s\n", name)
	}
}

func want(what string, got, expected any) error {
	if !reflect.DeepEqual(got, expected) {
		return fmt.Errorf("%s is %v (%T), not %v (%T)", what, got, got, expected, expected)
	}
	return nil
}

func wantNumber(err error, number uint16, state string) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return fmt.Errorf("no MySQL error %d but %v", number, err)
	}
	if e.Number != number || string(e.SQLState[:]) != state {
		return fmt.Errorf("%d (%s), not %d (%s): %s", e.Number, e.SQLState, number, state, e.Message)
	}
	return nil
}

func execAll(db *sql.DB, statements ...string) error {
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func main() {
	root, err := open("root", "?multiStatements=true")
	if err == nil {
		err = execAll(root, "DROP DATABASE IF EXISTS clients_go", "CREATE DATABASE clients_go", "DROP USER IF EXISTS go_sha, go_native, go_empty",
			"CREATE USER go_sha IDENTIFIED WITH caching_sha2_password BY 'sécret'", "CREATE USER go_native IDENTIFIED WITH mysql_native_password BY 'p@w'",
			"CREATE USER go_empty", "GRANT ALL ON *.* TO go_sha, go_native, go_empty")
	}
	if err != nil {
		fmt.Printf("FAIL go setup: %v\n", err)
		os.Exit(1)
	}
	for _, tls := range []string{"false", "skip-verify"} {
		for _, user := range []string{"go_sha:sécret", "go_native:p@w", "go_empty"} {
			check("connect "+user+" tls "+tls, func() error {
				db, err := open(user, "clients_go?tls="+tls)
				if err != nil {
					return err
				}
				defer db.Close()
				var name, cipher string
				if err := db.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
					return err
				}
				return want("encrypted", cipher != "", tls != "false")
			})
		}
		check("wrong password tls "+tls, func() error {
			for _, user := range []string{"go_sha:wrong", "go_native:wrong", "go_sha", "go_empty:some", "go_nobody:x"} {
				db, err := open(user, "clients_go?tls="+tls)
				db.Close()
				if err := wantNumber(err, 1045, "28000"); err != nil {
					return fmt.Errorf("%s: %w", user, err)
				}
			}
			return nil
		})
	}
	check("unknown database", func() error {
		_, err := open("root", "clients_nowhere")
		return wantNumber(err, 1049, "42000")
	})

	db, err := open("root", "clients_go?parseTime=true&time_zone=%27%2B02%3A00%27&loc=Etc%2FGMT-2&allowAllFiles=true")
	if err != nil {
		fmt.Printf("FAIL go open: %v\n", err)
		os.Exit(1)
	}
	check("every type there and back", func() error { return types(db) })
	check("transactions and savepoints", func() error { return transactions(db) })
	check("errors", func() error { return sqlErrors(db) })
	check("multi statements", func() error { return multi(root) })
	check("interpolated parameters", func() error {
		db, err := open("root", "clients_go?interpolateParams=true")
		if err != nil {
			return err
		}
		defer db.Close()
		var text string
		var bytes []byte
		err = db.QueryRow("SELECT ?, ?", `it's "\`+"\x00\n", []byte{0, 255, '\''}).Scan(&text, &bytes)
		return errors.Join(err, want("text", text, `it's "\`+"\x00\n"), want("bytes", bytes, []byte{0, 255, '\''}))
	})
	check("long parameters", func() error {
		var start string
		var n int64
		data := bytes.Repeat([]byte("x"), 3<<20)
		err := db.QueryRow("SELECT LENGTH(?), LEFT(?, 3)", data, data).Scan(&n, &start)
		return errors.Join(err, want("length", n, int64(3<<20)), want("start", start, "xxx"))
	})
	check("load data local infile", func() error { return load(db) })
	check("large streamed result", func() error { return large(db) })
	check("pool reset and cancellation", func() error { return pool(db) })
	check("column types", func() error { return columnTypes(db) })
	check("rows matched and changed", func() error {
		if err := execAll(db, "CREATE TABLE found (a INT)", "INSERT INTO found VALUES (1),(1),(2)"); err != nil {
			return err
		}
		changed, err := db.Exec("UPDATE found SET a = 1")
		if err != nil {
			return err
		}
		n, _ := changed.RowsAffected()
		matched, err := open("root", "clients_go?clientFoundRows=true")
		if err != nil {
			return err
		}
		defer matched.Close()
		r, err := matched.Exec("UPDATE found SET a = 1")
		if err != nil {
			return err
		}
		m, _ := r.RowsAffected()
		return errors.Join(want("changed", n, int64(1)), want("matched", m, int64(3)))
	})
	check("character sets", func() error {
		latin1, err := open("root", "clients_go?charset=latin1&collation=latin1_swedish_ci")
		if err != nil {
			return err
		}
		defer latin1.Close()
		var got []byte
		var upper string
		err = latin1.QueryRow("SELECT CONVERT(_utf8mb4 0xC3A9 USING latin1), HEX('\xe9')").Scan(&got, &upper)
		return errors.Join(err, want("bytes", got, []byte{0xe9}), want("hex", upper, "E9"))
	})
	root.Exec("DROP DATABASE clients_go; DROP USER go_sha, go_native, go_empty")
}

func types(db *sql.DB) error {
	if err := execAll(db, `CREATE TABLE types (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, t TINYINT, ut TINYINT UNSIGNED, s SMALLINT,
		m MEDIUMINT, i INT, b BIGINT, ub BIGINT UNSIGNED, f FLOAT, d DOUBLE, dc DECIMAL(20,5), c CHAR(5), v VARCHAR(50), bn BINARY(3), vb VARBINARY(9),
		tx TEXT, bl LONGBLOB, dt DATE, tm TIME(6), dtm DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR, e ENUM('x','y'), st SET('p','q'), js JSON, bi BIT(12), bo BOOLEAN)`); err != nil {
		return err
	}
	zone := time.FixedZone("", 2*3600)
	when := time.Date(2024, 2, 29, 23, 59, 58, 123456000, zone)
	blob := bytes.Repeat([]byte{0, 1, 255, '\''}, 30000)
	insert := `INSERT INTO types (t,ut,s,m,i,b,ub,f,d,dc,c,v,bn,vb,tx,bl,dt,tm,dtm,ts,y,e,st,js,bi,bo) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	values := []any{int8(-128), uint8(255), int16(-32768), int32(-8388608), int32(math.MinInt32), int64(math.MinInt64), uint64(math.MaxUint64),
		float32(1.5), 2.5e-300, "-123456789012345.67891", "abc", "é😀", []byte{1, 0}, []byte{255, 0}, "text", blob, "2024-02-29", "-838:59:58.5",
		when, when, 2155, "y", "p,q", `{"a": [1, null]}`, []byte{0x0f, 0xff}, true}
	r, err := db.Exec(insert, values...)
	if err != nil {
		return err
	}
	if id, _ := r.LastInsertId(); id != 1 {
		return fmt.Errorf("insert id %d", id)
	}
	if _, err = db.Exec(insert, make([]any, len(values))...); err != nil {
		return err
	}
	for _, args := range [][]any{{}, {1}} {
		query := "SELECT * FROM types WHERE id = 1"
		if len(args) == 1 {
			query = "SELECT * FROM types WHERE id = ?"
		}
		var id, ub uint64
		var t int8
		var ut uint8
		var s int16
		var m, i int32
		var b int64
		var f float32
		var d float64
		var dc, c, v, tx, tm, e, st, js string
		var bn, vb, bl, bi []byte
		var dt, dtm, ts time.Time
		var y int
		var bo bool
		if err := db.QueryRow(query, args...).Scan(&id, &t, &ut, &s, &m, &i, &b, &ub, &f, &d, &dc, &c, &v, &bn, &vb, &tx, &bl, &dt, &tm, &dtm, &ts, &y, &e, &st, &js, &bi, &bo); err != nil {
			return err
		}
		if err := errors.Join(want("tinyint", t, int8(-128)), want("tinyint unsigned", ut, uint8(255)), want("smallint", s, int16(-32768)),
			want("mediumint", m, int32(-8388608)), want("int", i, int32(math.MinInt32)), want("bigint", b, int64(math.MinInt64)),
			want("bigint unsigned", ub, uint64(math.MaxUint64)), want("float", f, float32(1.5)), want("double", d, 2.5e-300),
			want("decimal", dc, "-123456789012345.67891"), want("char", c, "abc"), want("varchar", v, "é😀"), want("binary", bn, []byte{1, 0, 0}),
			want("varbinary", vb, []byte{255, 0}), want("text", tx, "text"), want("blob", bytes.Equal(bl, blob), true),
			want("date", dt.Format("2006-01-02"), "2024-02-29"), want("time", tm, "-838:59:58.500000"), want("datetime", dtm.Equal(when), true),
			want("timestamp", ts.Equal(when.Truncate(time.Millisecond)), true), want("year", y, 2155), want("enum", e, "y"), want("set", st, "p,q"),
			want("json", js, `{"a": [1, null]}`), want("bit", bi, []byte{0x0f, 0xff}), want("boolean", bo, true)); err != nil {
			return err
		}
	}
	rows, err := db.Query("SELECT * FROM types WHERE id = ?", 2)
	if err != nil {
		return err
	}
	defer rows.Close()
	got := make([]any, len(values)+1)
	into := make([]any, len(got))
	for i := range got {
		into[i] = &got[i]
	}
	rows.Next()
	if err := rows.Scan(into...); err != nil {
		return err
	}
	for i, value := range got[1:] {
		if value != nil {
			return fmt.Errorf("column %d is %v, not NULL", i+1, value)
		}
	}
	return rows.Err()
}

func transactions(db *sql.DB) error {
	if err := execAll(db, "CREATE TABLE tx (id INT PRIMARY KEY)"); err != nil {
		return err
	}
	count := func() (n int) { db.QueryRow("SELECT COUNT(*) FROM tx").Scan(&n); return }
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	for _, s := range []string{"INSERT INTO tx VALUES (1)", "SAVEPOINT a", "INSERT INTO tx VALUES (2)", "ROLLBACK TO a", "INSERT INTO tx VALUES (3)"} {
		if _, err := tx.Exec(s); err != nil {
			return err
		}
	}
	if n := count(); n != 0 {
		return fmt.Errorf("%d uncommitted rows seen", n)
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	tx, _ = db.Begin()
	tx.Exec("DELETE FROM tx")
	tx.Rollback()
	if err := want("rows", count(), 2); err != nil {
		return err
	}
	tx, err = db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	_, err = tx.Exec("DELETE FROM tx")
	tx.Rollback()
	return wantNumber(err, 1792, "25006")
}

func sqlErrors(db *sql.DB) error {
	if err := execAll(db, "CREATE TABLE err (id INT PRIMARY KEY, v VARCHAR(3) NOT NULL)", "INSERT INTO err VALUES (1, 'a')"); err != nil {
		return err
	}
	for _, c := range []struct {
		sql    string
		args   []any
		number uint16
		state  string
	}{
		{"SELEC 1", nil, 1064, "42000"},
		{"SELECT * FROM nowhere", nil, 1146, "42S02"},
		{"SELECT nothing FROM err WHERE id = ?", []any{1}, 1054, "42S22"},
		{"INSERT INTO err VALUES (1, 'b')", nil, 1062, "23000"},
		{"INSERT INTO err VALUES (?, ?)", []any{1, "b"}, 1062, "23000"},
		{"INSERT INTO err VALUES (?, ?)", []any{2, "long"}, 1406, "22001"},
		{"INSERT INTO err VALUES (?, ?)", []any{2, nil}, 1048, "23000"},
		{"INSERT INTO err VALUES (?, ?)", []any{int64(1) << 40, "a"}, 1264, "22003"},
		{"INSERT INTO err VALUES (?, ?)", []any{"x", "a"}, 1366, "HY000"},
		{"INSERT INTO err (id) VALUES (3)", nil, 1364, "HY000"},
		{"CREATE TABLE err (id INT)", nil, 1050, "42S01"},
		{"DROP TABLE nowhere", nil, 1051, "42S02"},
		{"SELECT 9223372036854775807 + ?", []any{1}, 1690, "22003"},
	} {
		rows, err := db.Query(c.sql, c.args...)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		if err := wantNumber(err, c.number, c.state); err != nil {
			return fmt.Errorf("%s %v: %w", c.sql, c.args, err)
		}
	}
	return nil
}

func multi(db *sql.DB) error {
	rows, err := db.Query("SELECT 1; DO 0; SELECT 'two', 2; SELECT * FROM nowhere.nothing; SELECT 4")
	if err != nil {
		return err
	}
	defer rows.Close()
	var a int
	rows.Next()
	rows.Scan(&a)
	var two string
	var b int
	if !rows.NextResultSet() {
		return fmt.Errorf("no second result: %v", rows.Err())
	}
	if !rows.Next() {
		if !rows.NextResultSet() || !rows.Next() {
			return fmt.Errorf("no third result: %v", rows.Err())
		}
	}
	if err := rows.Scan(&two, &b); err != nil {
		return err
	}
	for rows.NextResultSet() {
	}
	return errors.Join(want("first", a, 1), want("text", two, "two"), want("number", b, 2), wantNumber(rows.Err(), 1049, "42000"))
}

func load(db *sql.DB) error {
	if err := execAll(db, "CREATE TABLE loaded (a INT, b VARCHAR(20), c DECIMAL(6,2))"); err != nil {
		return err
	}
	mysql.RegisterReaderHandler("data", func() io.Reader {
		return strings.NewReader("a,b,c\n1,\"x,y\",2.50\n2,\\N,3\n3,é,4.125\n")
	})
	r, err := db.Exec(`LOAD DATA LOCAL INFILE 'Reader::data' INTO TABLE loaded CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' IGNORE 1 LINES`)
	if err != nil {
		return err
	}
	n, _ := r.RowsAffected()
	var sum, texts string
	err = db.QueryRow("SELECT SUM(c), GROUP_CONCAT(IFNULL(b, 'NULL') ORDER BY a SEPARATOR '|') FROM loaded").Scan(&sum, &texts)
	return errors.Join(err, want("rows", n, int64(3)), want("sum", sum, "9.63"), want("texts", texts, "x,y|NULL|é"))
}

func large(db *sql.DB) error {
	if err := execAll(db, "CREATE TABLE many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))"); err != nil {
		return err
	}
	const batches, batch = 40, 1000
	for i := 0; i < batches; i++ {
		args := make([]any, batch)
		for j := range args {
			args[j] = fmt.Sprintf("%0150d", i*batch+j+1)
		}
		if _, err := db.Exec("INSERT INTO many (v) VALUES "+strings.Repeat("(?),", batch-1)+"(?)", args...); err != nil {
			return err
		}
	}
	for _, args := range [][]any{{}, {0}} {
		query := "SELECT id, v FROM many ORDER BY id"
		if len(args) == 1 {
			query = "SELECT id, v FROM many WHERE id > ? ORDER BY id"
		}
		rows, err := db.Query(query, args...)
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			var id int
			var v string
			if err := rows.Scan(&id, &v); err != nil {
				return err
			}
			n++
			if id != n || v != fmt.Sprintf("%0150d", n) {
				return fmt.Errorf("row %d is %d, %s", n, id, v)
			}
		}
		if err := errors.Join(rows.Err(), want("rows", n, batches*batch)); err != nil {
			return err
		}
		// A result left half read must not harm the pool.
		rows, err = db.Query(query, args...)
		if err != nil {
			return err
		}
		rows.Next()
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return db.Ping()
}

func pool(db *sql.DB) error {
	done := make(chan error, 20)
	for i := 0; i < 20; i++ {
		go func(i int) {
			var n int
			err := db.QueryRow("SELECT ? + 1", i).Scan(&n)
			done <- errors.Join(err, want("sum", n, i+1))
		}(i)
	}
	for i := 0; i < 20; i++ {
		if err := <-done; err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(ctx, "DO SLEEP(5)"); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a cancelled statement ended with %v", err)
	}
	return db.Ping()
}

func columnTypes(db *sql.DB) error {
	rows, err := db.Query("SELECT id, ub, dc, v, vb, bl, tx, dtm, js, bi, e FROM types LIMIT 0")
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	var names []string
	for _, c := range columns {
		nullable, _ := c.Nullable()
		names = append(names, fmt.Sprintf("%s %s %v", c.Name(), c.DatabaseTypeName(), nullable))
	}
	precision, scale, ok := columns[2].DecimalSize()
	return errors.Join(want("columns", strings.Join(names, ", "), "id UNSIGNED BIGINT false, ub UNSIGNED BIGINT true, dc DECIMAL true, v VARCHAR true, vb VARBINARY true, bl BLOB true, tx TEXT true, dtm DATETIME true, js JSON true, bi BIT true, e ENUM true"),
		want("decimal", []any{precision, scale, ok}, []any{int64(20), int64(5), true}))
}
