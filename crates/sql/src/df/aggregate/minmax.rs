//! MIN and MAX of text under a collation, of JSON and of doubles: of what compares as equal and is not the same, the first stays.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringViewBuilder};
use datafusion::arrow::datatypes::{DataType, Float64Type};
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

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let mut out = StringViewBuilder::with_capacity(len);
        self.best[..len].iter().for_each(|b| out.append_option(b.as_ref().map(|(_, text)| text)));
        Ok(Arc::new(out.finish()))
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

/// The least or greatest double of each group so far: 0 and -0 are equal.
#[derive(Debug)]
pub(super) struct DoubleExtreme {
    max: bool,
    watch: OrderWatch,
    best: Vec<Option<f64>>,
}

impl DoubleExtreme {
    pub fn new(max: bool, watch: OrderWatch) -> DoubleExtreme {
        DoubleExtreme { max, watch, best: Vec::new() }
    }
}

impl GroupState for DoubleExtreme {
    fn resize(&mut self, len: usize) {
        self.best.resize(len, None);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = args[0].as_primitive::<Float64Type>();
        for (row, &group) in groups.iter().enumerate() {
            if values.is_null(row) {
                continue;
            }
            let value = values.value(row);
            match &mut self.best[group] {
                Some(best) if *best == value => {
                    if best.to_bits() != value.to_bits() && self.watch.is_watching() {
                        self.watch.raise();
                    }
                }
                Some(best) if (*best < value) != self.max => {}
                best => *best = Some(value),
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        Ok(Arc::new(self.best[..len].iter().copied().collect::<Float64Array>()))
    }

    fn forget(&mut self, len: usize) {
        self.best.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::Float64]
    }

    fn bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<f64>>()
    }
}
