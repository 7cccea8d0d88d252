//! MIN and MAX of text under a collation and of JSON.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use highkey_types::{Collation, json};

use super::GroupState;
use crate::df::parallel::OrderWatch;

/// What texts compare as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::df) enum TextOrder {
    Collation(&'static Collation),
    /// The texts are JSON.
    Json,
}

impl TextOrder {
    fn push_key(self, text: &str, out: &mut Vec<u8>) {
        match self {
            TextOrder::Collation(collation) => collation.sort_key(text.as_bytes(), out),
            TextOrder::Json => json::push_key(&json::Json::of_normal(text), out),
        }
    }
}

/// The best text of each group so far, with its sort key.
#[derive(Debug)]
pub(super) struct TextExtreme {
    order: TextOrder,
    max: bool,
    watch: OrderWatch,
    best: Vec<Option<(Vec<u8>, Box<str>)>>,
    bytes: usize,
}

impl TextExtreme {
    pub fn new(order: TextOrder, max: bool, watch: OrderWatch) -> TextExtreme {
        TextExtreme { order, max, watch, best: Vec::new(), bytes: 0 }
    }
}

impl GroupState for TextExtreme {
    fn resize(&mut self, len: usize) {
        self.best.resize_with(len, || None);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let texts = args[0].as_string_view();
        let mut key = Vec::new();
        for (row, &group) in groups.iter().enumerate() {
            if texts.is_null(row) {
                continue;
            }
            let text = texts.value(row);
            key.clear();
            self.order.push_key(text, &mut key);
            let better = match &self.best[group] {
                None => true,
                Some((best, _)) if self.max => key > *best,
                Some((best, _)) => key < *best,
            };
            // Equal texts that are not the same: the first one stays, whichever it is.
            if !better && self.watch.is_watching() && self.best[group].as_ref().is_some_and(|(best, kept)| key == *best && **kept != *text) {
                self.watch.raise();
            }
            if better {
                self.bytes += key.len() + text.len();
                self.best[group] = Some((key.clone(), text.into()));
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.update(states, groups)
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let mut out = StringViewBuilder::with_capacity(len);
        self.best[..len].iter().for_each(|b| out.append_option(b.as_ref().map(|(_, text)| text)));
        Ok(Arc::new(out.finish()))
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(len)?])
    }

    fn forget(&mut self, len: usize) {
        self.best.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::Utf8View]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.best.capacity() * size_of::<Option<(Vec<u8>, Box<str>)>>()
    }
}
