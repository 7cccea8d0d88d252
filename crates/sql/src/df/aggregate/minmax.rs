//! MIN and MAX of text under a collation, of JSON, of members of ENUM and SET, and of doubles: of what compares as equal and is not the same, the first stays.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringViewBuilder, UInt16Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type, UInt16Type, UInt64Type};
use datafusion::common::Result;
use highkey_types::{Collation, ColumnType, TypeKind, json};

use super::GroupState;
use crate::df::parallel::OrderWatch;
use crate::df::repr::{data_type, enum_text, set_text};

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
                if let Some((key, text)) = self.best[group].replace((key.clone(), text.into())) {
                    self.bytes -= key.len() + text.len();
                }
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
        self.bytes -= self.best.drain(..len).flatten().map(|(key, text)| key.len() + text.len()).sum::<usize>();
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::Utf8View]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.best.capacity() * size_of::<Option<(Vec<u8>, Box<str>)>>()
    }
}

/// The member, or members, with the best text of each group so far, with its sort key.
#[derive(Debug)]
pub(super) struct MemberExtreme {
    ty: ColumnType,
    max: bool,
    watch: OrderWatch,
    best: Vec<Option<(Vec<u8>, u64)>>,
    bytes: usize,
}

impl MemberExtreme {
    /// `ty`: an ENUM or a SET.
    pub fn new(ty: ColumnType, max: bool, watch: OrderWatch) -> MemberExtreme {
        MemberExtreme { ty, max, watch, best: Vec::new(), bytes: 0 }
    }

    fn add(&mut self, group: usize, number: u64) {
        // Most rows have what the group has already.
        if self.best[group].as_ref().is_some_and(|(_, kept)| *kept == number) {
            return;
        }
        let text = match &self.ty.kind {
            TypeKind::Enum(members) => enum_text(number as u16, members),
            TypeKind::Set(members) => set_text(number, members),
            _ => unreachable!("only ENUM and SET have members"),
        };
        let mut key = Vec::new();
        self.ty.collation.sort_key(text.as_bytes(), &mut key);
        let better = match &self.best[group] {
            None => true,
            Some((best, _)) if self.max => key > *best,
            Some((best, _)) => key < *best,
        };
        if better {
            self.bytes += key.len();
            if let Some((key, _)) = self.best[group].replace((key, number)) {
                self.bytes -= key.len();
            }
        } else if self.watch.is_watching() && self.best[group].as_ref().is_some_and(|(best, _)| key == *best) {
            self.watch.raise();
        }
    }
}

impl GroupState for MemberExtreme {
    fn resize(&mut self, len: usize) {
        self.best.resize_with(len, || None);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = &args[0];
        for (row, &group) in groups.iter().enumerate() {
            if values.is_valid(row) {
                let number = match values.as_primitive_opt::<UInt16Type>() {
                    Some(indices) => u64::from(indices.value(row)),
                    None => values.as_primitive::<UInt64Type>().value(row),
                };
                self.add(group, number);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let numbers = self.best[..len].iter().map(|best| best.as_ref().map(|(_, number)| *number));
        Ok(match self.ty.kind {
            TypeKind::Enum(_) => Arc::new(numbers.map(|number| number.map(|index| index as u16)).collect::<UInt16Array>()),
            _ => Arc::new(numbers.collect::<UInt64Array>()),
        })
    }

    fn forget(&mut self, len: usize) {
        self.bytes -= self.best.drain(..len).flatten().map(|(key, _)| key.len()).sum::<usize>();
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![data_type(&self.ty)]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.best.capacity() * size_of::<Option<(Vec<u8>, u64)>>()
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
