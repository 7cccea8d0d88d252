// Sequelize and TypeORM make schemas, read them back and use them: orms.js PORT. What they find is compared with what they
// found on MySQL 8.0.12, in orms.recorded; RECORD=1 writes that file.
'use strict';
const fs = require('fs');
const { Sequelize, DataTypes, Op } = require('sequelize');
const { DataSource, EntitySchema, TableForeignKey, TableIndex } = require('typeorm');

const port = Number(process.argv[2]);
const database = 'orms_js';
const file = `${__dirname}/orms.recorded`;
const recording = process.env.RECORD === '1';
const recorded = recording ? {} : JSON.parse(fs.readFileSync(file, 'utf8'));

// Display widths of integers went with 8.0.19, and are not what is asked here.
const withoutWidths = (text) => text.replace(/\b((?:BIG|SMALL|MEDIUM)?INT)\(\d+\)/g, '$1').replace(/\bTINYINT\([2-9]\)/g, 'TINYINT');

function found(name, value) {
    const text = withoutWidths(JSON.stringify(value));
    if (recording) recorded[name] = JSON.parse(text);
    else if (text === JSON.stringify(recorded[name])) console.log(`ok ${name}`);
    else console.log(`FAIL ${name}: ${text} instead of ${JSON.stringify(recorded[name])}`);
}

async function refusal(name, statement, facts) {
    try {
        await statement();
        found(name, 'nothing was refused');
    } catch (e) {
        found(name, facts(e));
    }
}

async function withSequelize() {
    const sequelize = new Sequelize(database, 'root', '', { host: '127.0.0.1', port, dialect: 'mysql', logging: false });
    const User = sequelize.define('User', {
        name: { type: DataTypes.STRING(40), unique: true, allowNull: false },
        age: DataTypes.INTEGER.UNSIGNED,
        balance: { type: DataTypes.DECIMAL(10, 2), defaultValue: '1.50' },
        meta: DataTypes.JSON,
        kind: DataTypes.ENUM('a', 'b'),
        token: DataTypes.UUID,
        born: DataTypes.DATEONLY,
        at: DataTypes.TIME,
        bytes: DataTypes.BLOB,
        active: { type: DataTypes.BOOLEAN, defaultValue: true },
        text: DataTypes.TEXT('medium'),
        big: DataTypes.BIGINT,
        double: DataTypes.DOUBLE,
    }, { indexes: [{ fields: ['age', 'kind'], name: 'age_kind' }, { fields: [{ name: 'text', length: 10 }] }], comment: 'users' });
    const Post = sequelize.define('Post', { title: DataTypes.STRING, n: DataTypes.INTEGER }, { paranoid: true, underscored: true });
    const Tag = sequelize.define('Tag', { label: DataTypes.STRING });
    User.hasMany(Post, { onDelete: 'CASCADE', foreignKey: 'user_id' });
    Post.belongsTo(User, { foreignKey: 'user_id' });
    Post.belongsToMany(Tag, { through: 'PostTags' });
    Tag.belongsToMany(Post, { through: 'PostTags' });
    await sequelize.sync({ force: true });

    const schema = sequelize.getQueryInterface();
    const names = async () => (await schema.showAllTables()).map((t) => t.tableName || t).sort();
    found('sequelize tables', await names());
    for (const table of ['Users', 'posts', 'PostTags']) {
        found(`sequelize columns of ${table}`, await schema.describeTable(table));
        found(`sequelize indexes of ${table}`, await schema.showIndex(table));
        found(`sequelize foreign keys of ${table}`, await schema.getForeignKeyReferencesForTable(table));
    }

    await User.bulkCreate([
        { name: 'a', age: 1, meta: { x: [1] }, kind: 'a', born: '2000-01-01', at: '10:00:00', bytes: Buffer.from([0, 255]), big: '9007199254740993' },
        { name: 'b', age: 2, kind: 'b' },
    ]);
    found('sequelize findOrCreate', (await User.findOrCreate({ where: { name: 'c' }, defaults: { age: 3 } })).map((x) => x.name || x));
    await User.upsert({ name: 'a', age: 10 });
    await Post.bulkCreate([{ title: 'p1', n: 1, user_id: 1 }, { title: 'p2', n: 2, user_id: 1 }, { title: 'p3', n: 3, user_id: 2 }]);
    const attributes = { exclude: ['createdAt', 'updatedAt'] };
    found('sequelize rows', await User.findAll({ raw: true, where: { name: { [Op.in]: ['a', 'b'] } }, order: ['id'], attributes }));
    const include = [{ model: Post, where: { n: { [Op.gt]: 0 } }, required: false }];
    const { rows } = await User.findAndCountAll({ include, order: [['id', 'ASC'], [Post, 'id', 'DESC']], limit: 2, distinct: true });
    found('sequelize include and limit', rows.map((r) => [r.name, r.Posts.map((p) => p.title)]));
    found('sequelize JSON path', await User.count({ where: { 'meta.x[0]': 1 } }));
    found('sequelize groups', await Post.findAll({
        raw: true,
        attributes: ['user_id', [sequelize.fn('SUM', sequelize.col('n')), 's'], [sequelize.fn('AVG', sequelize.col('n')), 'a']],
        group: ['user_id'],
        having: sequelize.literal('s > 1'),
        order: ['user_id'],
    }));
    await Post.destroy({ where: { title: 'p1' } });
    found('sequelize paranoid', await Post.count());
    await User.increment({ age: 5 }, { where: { name: 'a' } });
    found('sequelize increment', (await User.findOne({ where: { name: 'a' } })).age);
    await refusal('sequelize rollback', () => sequelize.transaction({ isolationLevel: 'SERIALIZABLE' }, async (transaction) => {
        await User.create({ name: 'gone' }, { transaction });
        await sequelize.transaction({ transaction }, async () => {});
        throw new Error('undo');
    }), (e) => e.message);
    found('sequelize rolled back', await User.count({ where: { name: 'gone' } }));
    await refusal('sequelize unique', () => User.create({ name: 'b' }), (e) => [e.name, e.fields, e.parent.errno]);
    await refusal('sequelize foreign key', () => Post.create({ title: 'z', user_id: 99 }), (e) => [e.name, e.table, e.fields, e.index, e.parent.sqlMessage]);

    await schema.addColumn('Users', 'extra', { type: DataTypes.STRING(5), after: 'name', defaultValue: 'q', comment: 'c' });
    await schema.renameColumn('Users', 'extra', 'more');
    await schema.changeColumn('Users', 'more', { type: DataTypes.TEXT });
    await schema.addIndex('Users', ['age'], { name: 'age' });
    await schema.addConstraint('posts', { fields: ['title'], type: 'unique', name: 'title_once' });
    await schema.renameTable('Tags', 'Labels');
    found('sequelize changed columns', await schema.describeTable('Users'));
    found('sequelize changed indexes', (await schema.showIndex('posts')).map((i) => [i.name, i.unique]));
    await schema.removeIndex('Users', 'age');
    await schema.removeConstraint('posts', 'title_once');
    await schema.removeColumn('Users', 'more');
    await sequelize.sync({ alter: true });
    found('sequelize tables after alter', await names());
    await sequelize.close();
}

async function withTypeOrm() {
    const author = new EntitySchema({
        name: 'author',
        columns: {
            id: { type: Number, primary: true, generated: true },
            name: { type: 'varchar', length: 30, unique: true, comment: 'its name' },
            score: { type: 'decimal', precision: 8, scale: 3, default: 0 },
            data: { type: 'json', nullable: true },
            status: { type: 'enum', enum: ['x', 'y'], default: 'x' },
            flags: { type: 'set', enum: ['p', 'q'], nullable: true },
            created: { type: 'datetime', createDate: true, precision: 6 },
            updated: { type: 'timestamp', updateDate: true },
            loud: { type: 'varchar', length: 60, asExpression: "concat(`name`,'!')", generatedType: 'STORED', nullable: true },
            small: { type: 'smallint', unsigned: true, nullable: true },
            bytes: { type: 'varbinary', length: 16, nullable: true },
            collated: { type: 'varchar', collation: 'utf8mb4_unicode_ci', length: 10, nullable: true },
            bits: { type: 'bit', width: 3, nullable: true },
            year: { type: 'year', nullable: true },
            time: { type: 'time', precision: 3, nullable: true },
            touched: { type: 'datetime', default: () => 'CURRENT_TIMESTAMP', onUpdate: 'CURRENT_TIMESTAMP' },
        },
        relations: { books: { type: 'one-to-many', target: 'book', inverseSide: 'author' } },
        indices: [{ columns: ['score', 'status'] }],
    });
    const book = new EntitySchema({
        name: 'book',
        columns: { id: { type: 'char', length: 36, primary: true, generated: 'uuid' }, title: { type: 'varchar' }, version: { type: Number, version: true } },
        relations: { author: { type: 'many-to-one', target: 'author', joinColumn: true, onDelete: 'CASCADE', nullable: true, inverseSide: 'books' } },
    });
    const source = new DataSource({ type: 'mysql', host: '127.0.0.1', port, username: 'root', password: '', database, entities: [author, book] });
    await source.initialize();
    await source.synchronize(false);
    // A schema that reads back as what was asked for needs no change.
    found('typeorm drift', (await source.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query));
    const runner = source.createQueryRunner();
    for (const name of ['author', 'book']) {
        const table = await runner.getTable(name);
        found(`typeorm columns of ${name}`, table.columns.map((c) => [
            c.name, c.type, c.length, c.precision, c.scale, c.isNullable, c.default, c.onUpdate, c.generationStrategy, c.isUnique, c.unsigned, c.enum,
            c.asExpression, c.generatedType, c.charset, c.collation, c.comment, c.isPrimary,
        ]));
        found(`typeorm indexes of ${name}`, table.indices.map((i) => [i.name, i.columnNames, i.isUnique]).sort());
        found(`typeorm foreign keys of ${name}`, table.foreignKeys.map((f) => [f.columnNames, f.referencedTableName, f.onDelete, f.onUpdate]));
    }

    const authors = source.getRepository('author');
    const one = await authors.save({ name: 'n1', score: '1.5', data: { k: 1 }, flags: ['p', 'q'], bytes: Buffer.from('ab'), year: 2020, time: '10:00:00.123' });
    const first = await source.getRepository('book').save({ title: 't', author: one });
    first.title = 't2';
    await source.getRepository('book').save(first);
    const query = authors.createQueryBuilder('a').leftJoinAndSelect('a.books', 'b').where('a.score > :least', { least: 1 }).orderBy('a.id').take(1);
    found('typeorm rows', (await query.getMany()).map((a) => [a.name, a.score, a.data, a.status, a.flags, a.loud, a.year, a.time, a.books.map((b) => [b.title, b.version])]));
    await authors.upsert([{ name: 'n1', score: '9' }], ['name']);
    found('typeorm upsert', (await authors.findOneBy({ name: 'n1' })).score);
    await runner.createIndex('author', new TableIndex({ name: 'extra', columnNames: ['name'] }));
    await runner.dropIndex('author', 'extra');
    await runner.createForeignKey('book', new TableForeignKey({ name: 'again', columnNames: ['authorId'], referencedTableName: 'author', referencedColumnNames: ['id'] }));
    await runner.dropForeignKey('book', 'again');
    await runner.renameTable('book', 'volume');
    found('typeorm renamed', (await runner.getTable('volume')).foreignKeys.length);
    await runner.release();
    await source.destroy();
}

async function main() {
    const admin = new Sequelize('', 'root', '', { host: '127.0.0.1', port, dialect: 'mysql', logging: false });
    await admin.query(`DROP DATABASE IF EXISTS ${database}`);
    await admin.query(`CREATE DATABASE ${database}`);
    await withSequelize();
    await withTypeOrm();
    await admin.query(`DROP DATABASE ${database}`);
    await admin.close();
    if (recording) fs.writeFileSync(file, `${JSON.stringify(recorded, null, 1)}\n`);
}

main().catch((e) => {
    console.log(`FAIL orms.js: ${e.message} ${e.sql || e.query || ''}`.replace(/\n/g, ' '));
    process.exit(1);
});
