//! Statements to a replica. Names are upper case and in the words of MySQL 8.0.23 and later: SOURCE_HOST, whether MASTER_HOST was written or not.

/// The value of an option of CHANGE REPLICATION SOURCE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceValue {
    /// A string.
    Text(String),
    /// A number as it was written.
    Number(String),
    /// A list of numbers.
    List(Vec<u64>),
    /// A word: NULL, LOCAL, slave_pos.
    Word(String),
}

impl SourceValue {
    /// The text of a string, a word or a number.
    pub fn text(&self) -> Option<&str> {
        match self {
            SourceValue::Text(text) | SourceValue::Number(text) | SourceValue::Word(text) => Some(text),
            SourceValue::List(_) => None,
        }
    }

    /// The number, if it is a whole one.
    pub fn number(&self) -> Option<u64> {
        match self {
            SourceValue::Number(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// Options in the order written.
pub type SourceOptions = Vec<(String, SourceValue)>;

/// Which of a replica's two threads a statement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaThreads {
    /// The one that reads from the source.
    pub io: bool,
    /// The one that applies.
    pub sql: bool,
}

/// A statement about a channel; all have FOR CHANNEL.
#[derive(Debug, Clone)]
pub struct ReplicaStatement {
    /// What is to be done.
    pub action: ReplicaAction,
    /// FOR CHANNEL; the default channel has no name.
    pub channel: Option<String>,
}

/// What a statement asks of a replica.
#[derive(Debug, Clone)]
pub enum ReplicaAction {
    /// CHANGE REPLICATION SOURCE TO, CHANGE MASTER TO.
    ChangeSource(SourceOptions),
    /// CHANGE REPLICATION FILTER: each rule with its databases or tables (`db.table`, `from->to`).
    ChangeFilter(Vec<(String, Vec<String>)>),
    /// START REPLICA, START SLAVE.
    Start {
        /// Which of them.
        threads: ReplicaThreads,
        /// UNTIL.
        until: SourceOptions,
        /// USER, PASSWORD and the like, for this start only.
        login: SourceOptions,
    },
    /// STOP REPLICA, STOP SLAVE.
    Stop(ReplicaThreads),
    /// RESET REPLICA, RESET SLAVE; `all` forgets the source.
    Reset {
        /// ALL.
        all: bool,
    },
}
