// mysql2 against a server: node clients.js PORT. Prints "ok NAME" or "FAIL NAME: why" for each check.
const assert = require('node:assert');
const { Readable } = require('node:stream');
const mysql = require('mysql2/promise');
const callbacks = require('mysql2');

const port = Number(process.argv[2]);
const base = { host: '127.0.0.1', port, user: 'root', charset: 'utf8mb4' };

async function check(name, body) {
    try {
        await body();
        console.log(`ok node ${name}`);
    } catch (e) {
        console.log(`FAIL node ${name}: ${e.message.split('\n').join(' ')}`);
    }
}

const fails = (promise, errno, sqlState) =>
    assert.rejects(promise, e => { assert.deepStrictEqual([e.errno, e.sqlState], [errno, sqlState], e.message); return true; });

async function connected(options, body) {
    const c = await mysql.createConnection({ ...base, ...options });
    try {
        return await body(c);
    } finally {
        await c.end();
    }
}

async function accounts(root) {
    for (const ssl of [undefined, { rejectUnauthorized: false }]) {
        const how = ssl ? 'tls' : 'clear';
        for (const [user, password] of [['node_sha', 'sécret'], ['node_native', 'p@w'], ['node_empty', '']]) {
            await check(`connect ${user} ${how}`, () => connected({ user, password, ssl, database: 'clients_node' }, async c => {
                const [[status]] = await c.query("SHOW STATUS LIKE 'Ssl_cipher'");
                assert.strictEqual(status.Value !== '', Boolean(ssl));
            }));
        }
        await check(`wrong password ${how}`, async () => {
            for (const user of ['node_sha', 'node_native', 'node_empty', 'node_nobody'])
                await fails(connected({ user, password: 'wrong', ssl }, () => {}), 1045, '28000');
        });
    }
    await check('unknown database', () => fails(connected({ database: 'clients_nowhere' }, () => {}), 1049, '42000'));
    await check('change user', () => connected({ database: 'clients_node' }, async c => {
        const user = async () => (await c.query('SELECT CURRENT_USER() AS u, DATABASE() AS d'))[0][0];
        await c.query('SET @a = 1');
        await c.changeUser({ user: 'node_native', password: 'p@w', database: 'clients_node' });
        assert.deepStrictEqual({ ...await user() }, { u: 'node_native@%', d: 'clients_node' });
        assert.strictEqual((await c.query('SELECT @a AS a'))[0][0].a, null);
        await c.changeUser({ user: 'node_sha', password: 'sécret' });
        assert.deepStrictEqual({ ...await user() }, { u: 'node_sha@%', d: 'clients_node' });
    }));
}

async function types(c) {
    await c.query(`CREATE TABLE types (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, ti TINYINT, b BIGINT, ub BIGINT UNSIGNED, f FLOAT, d DOUBLE, dc DECIMAL(30,10),
        c CHAR(5), v VARCHAR(20), vb VARBINARY(9), tx TEXT, bl LONGBLOB, dt DATE, tm TIME, dtm DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR, e ENUM('x','y'), st SET('p','q'), js JSON, bi BIT(12))`);
    const blob = Buffer.alloc(100000, Buffer.from([0, 255, 39, 92]));
    const values = [-128, '-9223372036854775808', '18446744073709551615', 1.5, 2.5e-300, '-12345678901234567890.0123456789', 'abc', "é😀'\\", Buffer.from([255, 0]), 'text',
        blob, '2024-02-29', '-838:59:58', '2024-02-29 23:59:58.123456', '2024-02-29 23:59:58.250', 2024, 'y', 'p,q', '{"a": [1, null]}', Buffer.from([15, 255])];
    const insert = `INSERT INTO types VALUES (NULL${',?'.repeat(values.length)})`;
    const read = { ti: -128, b: '-9223372036854775808', ub: '18446744073709551615', f: 1.5, d: 2.5e-300, dc: values[5], c: 'abc', v: values[7], vb: values[8], tx: 'text',
        bl: blob, dt: values[11], tm: values[12], dtm: values[13], ts: values[14], y: 2024, e: 'y', st: 'p,q', js: { a: [1, null] }, bi: values[19] };
    for (const run of ['query', 'execute']) {
        await c.query('TRUNCATE TABLE types');
        const [result] = await c[run](insert, values);
        assert.deepStrictEqual([result.affectedRows, result.insertId], [1, 1]);
        await c[run](insert, values.map(() => null));
        const [[one, two]] = await c[run]('SELECT * FROM types WHERE id > ? ORDER BY id', [0]);
        assert.deepStrictEqual({ ...one }, { id: 1, ...read });
        for (const name of Object.keys(read)) assert.strictEqual(two[name], null, name);
    }
}

async function errors(c) {
    await c.query('CREATE TABLE err (id INT PRIMARY KEY, v VARCHAR(3) NOT NULL)');
    await c.query("INSERT INTO err VALUES (1, 'a')");
    for (const run of ['query', 'execute']) {
        await fails(c[run]('SELEC 1'), 1064, '42000');
        await fails(c[run]('SELECT * FROM nowhere'), 1146, '42S02');
        await fails(c[run]('SELECT nothing FROM err'), 1054, '42S22');
        await fails(c[run]("INSERT INTO err VALUES (1, 'b')"), 1062, '23000');
        await fails(c[run]("INSERT INTO err VALUES (2, 'long')"), 1406, '22001');
        await fails(c[run]('INSERT INTO err VALUES (2, NULL)'), 1048, '23000');
        const [warned] = await c[run]("INSERT IGNORE INTO err VALUES (1, 'long')");
        assert.deepStrictEqual([warned.affectedRows, warned.warningStatus], [0, 2]);
    }
    await fails(c.execute('SELECT * FROM err WHERE id = ?', []), 1835, 'HY000');
}

async function transactions(c) {
    await c.query('CREATE TABLE tx (id INT PRIMARY KEY)');
    await c.beginTransaction();
    await c.query('INSERT INTO tx VALUES (1)');
    await c.query('SAVEPOINT a');
    await c.query('INSERT INTO tx VALUES (2)');
    await c.query('ROLLBACK TO a');
    await c.commit();
    await c.beginTransaction();
    await c.query('DELETE FROM tx');
    await c.rollback();
    assert.strictEqual((await c.query('SELECT GROUP_CONCAT(id) AS ids FROM tx'))[0][0].ids, '1');
}

async function main() {
    const root = await mysql.createConnection({ ...base, multipleStatements: true });
    await root.query(`DROP DATABASE IF EXISTS clients_node; CREATE DATABASE clients_node; DROP USER IF EXISTS node_sha, node_native, node_empty;
        CREATE USER node_sha IDENTIFIED WITH caching_sha2_password BY 'sécret'; CREATE USER node_native IDENTIFIED WITH mysql_native_password BY 'p@w';
        CREATE USER node_empty; GRANT ALL ON *.* TO node_sha, node_native, node_empty; USE clients_node`);
    await accounts(root);
    const c = await mysql.createConnection({ ...base, database: 'clients_node', dateStrings: true, supportBigNumbers: true, bigNumberStrings: false });
    await check('every type there and back', () => types(c));
    await check('transactions and savepoints', () => transactions(c));
    await check('batch insert and streamed result', async () => {
        await c.query('CREATE TABLE many (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100))');
        for (let i = 0; i < 20; i++)
            await c.query('INSERT INTO many (v) VALUES ?', [Array.from({ length: 1000 }, (_, j) => [`value ${i * 1000 + j + 1}`])]);
        const plain = callbacks.createConnection({ ...base, database: 'clients_node' });
        let n = 0;
        for await (const row of plain.query('SELECT * FROM many ORDER BY id').stream()) assert.strictEqual(row.v, `value ${++n}`);
        assert.strictEqual(n, 20000);
        plain.end();
    });
    await check('multi statements', async () => {
        const [results] = await root.query("SELECT 1 AS a; UPDATE tx SET id = 5; SELECT 'x' AS b");
        assert.deepStrictEqual([results[0][0].a, results[1].affectedRows, results[2][0].b], [1, 1, 'x']);
        await fails(c.query('SELECT 1; SELECT 2'), 1064, '42000');
    });
    await check('load data local infile', async () => {
        await c.query('CREATE TABLE loaded (a INT, b VARCHAR(20))');
        const [r] = await c.query({ sql: "LOAD DATA LOCAL INFILE 'data' INTO TABLE loaded FIELDS TERMINATED BY ','", infileStreamFactory: () => Readable.from([Buffer.from('1,é\n2,'), Buffer.from('\\N\n')]) });
        assert.strictEqual(r.affectedRows, 2);
        assert.strictEqual((await c.query("SELECT GROUP_CONCAT(IFNULL(b, 'NULL') ORDER BY a) AS t FROM loaded"))[0][0].t, 'é,NULL');
    });
    await check('errors and warnings', () => errors(c));
    await check('column definitions', async () => {
        const [, fields] = await c.query('SELECT t.id AS renamed, v, bl FROM types t LIMIT 0');
        assert.deepStrictEqual(fields.map(f => [f.name, f.orgName, f.table, f.orgTable, f.schema, f.columnType]),
            [['renamed', 'id', 't', 'types', 'clients_node', 3], ['v', 'v', 't', 'types', 'clients_node', 253], ['bl', 'bl', 't', 'types', 'clients_node', 252]]);
    });
    await check('pool', async () => {
        const pool = mysql.createPool({ ...base, database: 'clients_node', connectionLimit: 5 });
        const sums = await Promise.all(Array.from({ length: 40 }, (_, i) => pool.execute('SELECT COUNT(*) AS s FROM many WHERE id <= ?', [i + 1])));
        sums.forEach(([[row]], i) => assert.strictEqual(Number(row.s), i + 1));
        await pool.end();
    });
    await check('time zone', () => connected({ database: 'clients_node', timezone: '+05:00', dateStrings: true }, async z => {
        await z.query("SET time_zone = '+05:00'");
        assert.strictEqual((await z.query('SELECT FROM_UNIXTIME(0) AS t'))[0][0].t, '1970-01-01 05:00:00');
    }));
    await c.end();
    await root.query('DROP DATABASE clients_node; DROP USER node_sha, node_native, node_empty');
    await root.end();
}

main().catch(e => { console.log(`FAIL node run: ${e.message}`); process.exit(1); });
