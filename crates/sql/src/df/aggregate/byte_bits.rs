//! Bit operations of byte strings.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use highkey_types::errors;

use super::{BitOperation, GroupState};
use crate::df::error::user;

/// BIT_AND, BIT_OR, BIT_XOR of byte strings that all have one length, which is error 3513 otherwise. An empty group has the neutral value, never NULL.
#[derive(Debug)]
pub(super) struct ByteBits {
    operation: BitOperation,
    neutral: Vec<u8>,
    /// `None` before the first row, which says how long the others are to be.
    groups: Vec<Option<Box<[u8]>>>,
}

impl ByteBits {
    pub fn new(operation: BitOperation, length: usize) -> ByteBits {
        let neutral = vec![if operation == BitOperation::And { u8::MAX } else { 0 }; length];
        ByteBits { operation, neutral, groups: Vec::new() }
    }
}

impl GroupState for ByteBits {
    fn resize(&mut self, len: usize) {
        self.groups.resize(len, None);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let values = args[0].as_binary_view();
        for (row, &group) in groups.iter().enumerate().filter(|(row, _)| values.is_valid(*row)) {
            let value = values.value(row);
            let Some(bits) = &mut self.groups[group] else {
                self.groups[group] = Some(value.into());
                continue;
            };
            if bits.len() != value.len() {
                return Err(user(errors::invalid_bitwise_operands_size()));
            }
            for (bits, byte) in bits.iter_mut().zip(value) {
                match self.operation {
                    BitOperation::And => *bits &= byte,
                    BitOperation::Or => *bits |= byte,
                    BitOperation::Xor => *bits ^= byte,
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let results = self.groups[..len].iter().map(|bits| bits.as_deref().unwrap_or(&self.neutral));
        Ok(Arc::new(BinaryViewArray::from_iter_values(results)))
    }

    /// NULL for a group without rows: its neutral value may be of another length than the rows elsewhere.
    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let results: BinaryViewArray = self.groups[..len].iter().map(|bits| bits.as_deref()).collect();
        Ok(vec![Arc::new(results)])
    }

    fn forget(&mut self, len: usize) {
        self.groups.drain(..len);
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::BinaryView]
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * (size_of::<Option<Box<[u8]>>>() + self.neutral.len())
    }
}
