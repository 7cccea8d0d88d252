//! Tables over the storage engine: the catalog, rows and indexes, AUTO_INCREMENT, scans, and data definition.
//!
//! A [`Database`] is an engine with a catalog of tables, usable without a server (`examples/embedded.rs`). Sessions
//! work through [`Transaction`]s: they open a [`Table`], which holds its definition still, then read, insert, update,
//! delete and scan it. Definitions change through the DDL methods of `Database`, each atomic. README.md has the
//! formats, the invariants and the crash states.
//!
//! Values are checked and converted before they get here: this layer sees to keys, uniqueness and where bytes go.
#![forbid(unsafe_code)]

mod auto_increment;
mod auto_lock;
mod block_on;
mod bulk;
mod catalog;
mod check;
mod commit;
mod compact;
mod covering;
mod database;
mod ddl;
mod def;
mod error;
mod event;
mod foreign;
mod full_text;
mod gate;
mod grants;
mod high_water;
mod histogram;
mod index;
mod insert;
mod metadata_lock;
mod pace;
mod partition;
mod replica;
mod restored;
mod routine;
mod row;
mod row_id;
mod scan;
mod session_locks;
mod statistics;
mod table;
mod temporary;
mod timer;
mod transaction;
mod trigger;
mod usage;
mod users;
mod view;
mod xa;

pub use auto_increment::{AutoIncrement, Reservation, explicit_value};
pub use auto_lock::{AutoIncrementLock, Numbering};
pub use block_on::block_on;
pub use bulk::{BulkInsert, BulkReport, EncodedRows, PreparedRows};
pub use catalog::Catalog;
pub use commit::{
    Binlog, BinlogBytes, BinlogOptions, BinlogPosition, BinlogWait, BinlogWritten, EventSource, FileInUse, GtidChoice, OwnedGtid, Owning, SemiSync, SemiSyncSettings, SemiSyncStatus, Settings as BinlogSettings,
    WatchGuard, number_of as binlog_file_number,
};
pub use check::TableCheck;
pub use database::{Database, OpenError};
pub use ddl::{AlterPlan, DdlContext, LoggedStatement, Others, RepartitionPlan, RowConversion, TableName, rename_checks};
pub use def::{
    CheckDef, ColumnDef, Default, ForeignKeyDef, Generated, IndexDef, IndexKind, IndexPart, IndexSpec, ReferenceAction, SYSTEM_SCHEMAS, SchemaDef,
    TableDef, TableId, TableSpec, UserDef, is_system_schema,
};
pub use event::{EventDef, EventSchedule, EventStatus};
pub use foreign::Generator;
pub use full_text::{STOPWORDS, StopwordList, Stopwords, WordParser, WordRows, WordRules, Words, is_of_word, word_key};
pub use highkey_binlog::Xid;
pub use highkey_storage::{
    ActiveTxn, Blocked, CommitSyncs, DeadlockReport, Direction, DiskUsage, FileUsage, FutureWait, IndexId, Interrupt, IoSum, Isolation, LatchMode, LatchPlace, LatchWaits, LatchedPage, LeafRun, LevelReport,
    LockExtent, LockMode, LockReport, LockReports, LockWaitPolicy, Options, Progress, Stage, TimeSplit, TreeCounters, TxnActivity, TxnId, TxnLocks, TxnSize, WaitKind, WaitSum, Waits, blocked,
    leave_processors, lower_priority, processor, waiting,
};
pub use grants::{AccountName, DYNAMIC_PRIVILEGES, Grants, Privileges, RoutineGrants, TableGrants};
pub use histogram::{Bucket, Histogram};
pub use insert::{DuplicateRow, InsertReport, OnDuplicate};
pub use partition::{ColumnLimit, PartitionArgument, PartitionCall, PartitionDef, PartitionExpr, PartitionMethod, PartitionOperator, PartitionValues, Partitioning};
pub use replica::ReplicaRecord;
pub use restored::is_server_table;
pub use routine::{DataAccess, RoutineDef, RoutineKind};
pub use row::{Row, RowBatch};
pub use scan::{KeyRange, LockingScan, ScanPartition, ScanPartitions, SemiConsistent, TableScan};
pub use metadata_lock::{MetadataLockReport, MetadataMode, MetadataObject};
pub use session_locks::{DefinitionPassage, Passage, SessionLocks};
pub use statistics::{IndexSummary, PAGE_BYTES, Statistics};
pub use table::Table;
pub use transaction::{Savepoints, Snapshot, StatementSavepoint, Transaction};
pub use trigger::{TriggerDef, TriggerEvent, TriggerPlace, TriggerTime};
pub use usage::{RowUse, RowUses};
pub use view::{CheckOption, View, ViewAlgorithm, ViewDef};
pub use xa::{LeftTransaction, XaBranch};
