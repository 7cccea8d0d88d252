//! The order of latches that debug builds check.

use super::rig;
use crate::btree::Cursor;
use crate::buffer::{LatchClass, Writer};
use crate::ids::PageId;
use crate::page::slotted::Node;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_latch_out_of_order_is_noticed() {
    let rig = rig(64);
    let mut cursor = Cursor::new();
    for i in 0..100u32 {
        rig.tree.put(&mut cursor, &i.to_be_bytes(), &[1; 400]).unwrap();
    }
    let pool = &rig.store.pool;
    let (left, right) = {
        let root = pool.fix_shared(rig.tree.root()).unwrap();
        assert_eq!(Node(&root).level(), 1);
        (PageId(Node(&root).child(0).unwrap()), PageId(Node(&root).child(1).unwrap()))
    };
    let passes = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_ok();
    let latch = |pages: &[PageId]| {
        let guards: Vec<_> = pages.iter().map(|page| pool.fix_exclusive(*page, LatchClass::Smo).unwrap()).collect();
        drop(guards);
    };
    assert!(passes(&|| latch(&[rig.tree.root(), left, right])));
    assert!(!passes(&|| latch(&[right, left])), "from right to left");
    assert!(!passes(&|| latch(&[left, rig.tree.root()])), "a parent after its child");
    assert!(!passes(&|| {
        let _leaf = pool.fix_shared(right).unwrap();
        let _scope = pool.scope(Writer::System).unwrap();
    }), "log space under a latch");
    assert!(!passes(&|| {
        let _leaf = pool.fix_shared(right).unwrap();
        let _ = rig.store.space.grow(1);
    }), "an extent under a latch");
    // Nothing is left latched.
    assert!(passes(&|| latch(&[rig.tree.root(), left, right])));
    super::checked(&rig.store, &rig.tree);
}
