//! For tests below transactions: a store that is opened without any.

use super::{Store, Transactions};
use crate::disk::SimDisk;
use crate::error::Result;
use crate::ids::{Lsn, TxnId};
use crate::options::Options;
use crate::sync::Arc;

/// Nobody is at work.
pub(crate) struct NoTransactions;

impl Transactions for NoTransactions {
    fn oldest_lsn(&self) -> Option<Lsn> {
        None
    }
    fn next_txn_id(&self) -> TxnId {
        TxnId(1)
    }
    fn max_ts(&self) -> u64 {
        0
    }
}

pub(crate) fn open(disk: &SimDisk, options: &Options) -> Result<Arc<Store>> {
    let (store, _) = Store::open(Arc::new(disk.clone()), options, &mut |_| {})?;
    store.start(Arc::new(NoTransactions));
    Ok(store)
}
