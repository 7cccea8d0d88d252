//! The order in which transactions commit: that of the source, however many are applied at once.
//!
//! Every transaction has a ticket, counted from 0 in the source's order. It may write its commit record into the log once the one before it has; that
//! both are durable takes one write of the log. A transaction that needs to see another one's rows waits until that one is done, which is later.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::position::Position;

/// What waiting for one's turn ends with.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// All before have written their commit records.
    Ours,
    /// A transaction before may wait for a lock that the waiting one has: it is to be undone, and applied again when its turn has come.
    MakeWay,
    /// Nothing commits any more.
    Over,
}

/// Shared by the applier's workers and whoever gives them work.
#[derive(Debug)]
pub struct Order(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    /// Transactions with lower tickets have written their commit records.
    appended: u64,
    /// Transactions with lower tickets are done: durable, their rows visible, their locks gone.
    done: u64,
    /// Done, while one before is not.
    done_early: BTreeMap<u64, Position>,
    /// Transactions after this one make way.
    urgent: Option<u64>,
    over: bool,
}

impl Order {
    pub fn new() -> Order {
        Order(watch::channel(State::default()).0)
    }

    /// Waits for the turn of a transaction that holds locks.
    pub async fn turn(&self, ticket: u64) -> Turn {
        let outcome = |state: &State| match state {
            State { over: true, .. } => Some(Turn::Over),
            State { appended, .. } if *appended == ticket => Some(Turn::Ours),
            State { urgent: Some(urgent), .. } if *urgent < ticket => Some(Turn::MakeWay),
            _ => None,
        };
        self.wait(outcome).await
    }

    /// Waits for the turn of a transaction that holds nothing. False: nothing commits any more.
    pub async fn turn_at_rest(&self, ticket: u64) -> bool {
        self.wait(|state| if state.over { Some(false) } else { (state.appended == ticket).then_some(true) }).await
    }

    /// Waits until all transactions with lower tickets are done. False: nothing commits any more.
    pub async fn done_below(&self, ticket: u64) -> bool {
        self.wait(|state| if state.over { Some(false) } else { (state.done >= ticket).then_some(true) }).await
    }

    /// Waits until nothing commits any more.
    pub async fn over(&self) {
        self.wait(|state| state.over.then_some(())).await;
    }

    async fn wait<T>(&self, outcome: impl Fn(&State) -> Option<T>) -> T {
        let mut states = self.0.subscribe();
        loop {
            if let Some(outcome) = outcome(&states.borrow_and_update()) {
                return outcome;
            }
            // The sender is ours.
            let _ = states.changed().await;
        }
    }

    pub fn is_over(&self) -> bool {
        self.0.borrow().over
    }

    /// The transaction whose turn it is wants the locks of those after it.
    pub fn make_way(&self, ticket: u64) {
        self.0.send_modify(|state| state.urgent = Some(ticket));
    }

    /// The transaction whose turn it was has written its commit record.
    pub fn appended(&self, ticket: u64) {
        self.0.send_modify(|state| {
            assert_eq!(state.appended, ticket, "a transaction commits in its turn");
            state.appended = ticket + 1;
            if state.urgent == Some(ticket) {
                state.urgent = None;
            }
        });
    }

    /// The transaction is done. `note` is told where the replica is now, if that has changed: in order, never backwards.
    pub fn done(&self, ticket: u64, position: Position, note: impl FnOnce(&Position)) {
        self.0.send_modify(|state| {
            state.done_early.insert(ticket, position);
            let mut newest = None;
            while let Some(position) = state.done_early.remove(&state.done) {
                state.done += 1;
                newest = Some(position);
            }
            if let Some(position) = newest {
                note(&position);
            }
        });
    }

    /// Ends everything that waits.
    pub fn end(&self) {
        self.0.send_modify(|state| state.over = true);
    }
}

/// From which transactions on a transaction may be applied beside others, by what the source says of them.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// MySQL: the first transaction of the file's part that was read, its number there and its ticket; the next number.
    file: Option<(u64, u64, u64)>,
    /// MariaDB: the group commit that the last transaction was in, and the ticket of its first.
    group: Option<((u32, u64), u64)>,
}

/// What a GTID event says about that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Nothing: the transaction comes after all before it.
    #[default]
    Unknown,
    /// MySQL: it may run once the transaction with the number `last_committed` of the same file is done.
    Logical { last_committed: u64, number: u64 },
    /// MariaDB: transactions of one group commit of a domain ran beside each other.
    Group { domain: u32, commit: u64 },
}

impl Dependencies {
    /// A new file or connection counts anew.
    pub fn restart(&mut self) {
        *self = Dependencies::default();
    }

    /// All transactions with tickets below what is returned must be done before the one with this ticket starts.
    pub fn of(&mut self, clock: Clock, ticket: u64) -> u64 {
        match clock {
            Clock::Unknown => {
                self.restart();
                ticket
            }
            Clock::Logical { last_committed, number } => match &mut self.file {
                Some((first, first_ticket, next)) if *next == number => {
                    *next += 1;
                    // What came before the first was waited for by it.
                    if last_committed < *first { *first_ticket } else { (*first_ticket + (last_committed - *first) + 1).min(ticket) }
                }
                _ => {
                    self.file = Some((number, ticket, number + 1));
                    ticket
                }
            },
            Clock::Group { domain, commit } => match self.group {
                Some((group, first)) if group == (domain, commit) => first,
                _ => {
                    self.group = Some(((domain, commit), ticket));
                    ticket
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn at(offset: u64) -> Position {
        Position { offset, ..Position::start() }
    }

    #[tokio::test]
    async fn commits_are_in_order_and_what_is_told_never_goes_back() {
        let order = Arc::new(Order::new());
        let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..20u64)
            .map(|ticket| {
                let (order, told) = (order.clone(), told.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis((20 - ticket) % 7)).await;
                    assert_eq!(order.turn(ticket).await, Turn::Ours);
                    order.appended(ticket);
                    // Durable in any order.
                    tokio::time::sleep(Duration::from_millis(ticket * 7 % 5)).await;
                    order.done(ticket, at(ticket), |position| told.lock().push(position.offset));
                })
            })
            .collect();
        assert!(order.done_below(20).await);
        for task in tasks {
            task.await.unwrap();
        }
        let told = told.lock();
        assert!(told.is_sorted() && told.last() == Some(&19), "{told:?}");
    }

    #[tokio::test]
    async fn those_behind_make_way_and_everything_ends() {
        let order = Arc::new(Order::new());
        let (second, third) = (order.clone(), order.clone());
        let second = tokio::spawn(async move { second.turn(1).await });
        let third = tokio::spawn(async move { third.turn_at_rest(2).await });
        order.make_way(0);
        assert_eq!(second.await.unwrap(), Turn::MakeWay);
        assert_eq!(order.turn(0).await, Turn::Ours);
        order.appended(0);
        assert_eq!(order.turn(1).await, Turn::Ours, "the urgent one is through");
        assert!(!order.is_over());
        order.end();
        assert!(!third.await.unwrap() && order.is_over());
        assert_eq!(order.turn(1).await, Turn::Over);
        assert!(!order.done_below(1).await);
    }

    #[test]
    fn mysqls_clock_counts_within_a_file() {
        let mut dependencies = Dependencies::default();
        let mut of = |last_committed, number, ticket| dependencies.of(Clock::Logical { last_committed, number }, ticket);
        // The first of a file comes after all before it; 2 and 3 ran beside it, 4 saw 2.
        assert_eq!(of(0, 1, 10), 10);
        assert_eq!(of(0, 2, 11), 10);
        assert_eq!(of(1, 3, 12), 11);
        assert_eq!(of(2, 4, 13), 12);
        assert_eq!(of(4, 5, 14), 14);
        // A number is missing: wait for everything.
        assert_eq!(of(4, 7, 15), 15);
        assert_eq!(of(5, 8, 16), 15, "what came before the first of the new part is done when that starts");
        assert_eq!(dependencies.of(Clock::Unknown, 17), 17);
        assert_eq!(dependencies.of(Clock::Logical { last_committed: 8, number: 9 }, 18), 18);
    }

    #[test]
    fn mariadbs_groups_run_beside_each_other() {
        let mut dependencies = Dependencies::default();
        let mut of = |domain, commit, ticket| dependencies.of(Clock::Group { domain, commit }, ticket);
        assert_eq!([of(0, 5, 0), of(0, 5, 1), of(0, 5, 2), of(0, 6, 3), of(1, 6, 4), of(1, 6, 5)], [0, 0, 0, 3, 4, 4]);
        assert_eq!(dependencies.of(Clock::Unknown, 6), 6);
        assert_eq!(dependencies.of(Clock::Group { domain: 1, commit: 6 }, 7), 7);
    }
}
