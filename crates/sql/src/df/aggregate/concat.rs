//! Aggregates that collect texts: GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use highkey_types::json;

use super::GroupState;
use crate::df::error::{null_object_key, user};

#[derive(Debug)]
enum Form {
    /// `max_bytes` is `group_concat_max_len`; `binary`: bytes, not text.
    Text { separator: Arc<str>, max_bytes: u64, binary: bool },
    JsonArray,
    JsonObject,
}

/// Two byte strings per row: order key and text, or object key and JSON.
type Entry = (Box<[u8]>, Box<[u8]>);
/// What it takes beside its strings.
const ENTRY_BYTES: usize = size_of::<Entry>();

#[derive(Debug)]
pub(super) struct Concat {
    form: Form,
    entries: Vec<Vec<Entry>>,
    bytes: usize,
}

impl Concat {
    pub fn text(separator: Arc<str>, max_bytes: u64, binary: bool) -> Concat {
        Concat { form: Form::Text { separator, max_bytes, binary }, entries: Vec::new(), bytes: 0 }
    }

    pub fn json_array() -> Concat {
        Concat { form: Form::JsonArray, entries: Vec::new(), bytes: 0 }
    }

    pub fn json_object() -> Concat {
        Concat { form: Form::JsonObject, entries: Vec::new(), bytes: 0 }
    }

    fn add(&mut self, group: usize, key: &[u8], text: &[u8]) {
        self.bytes += key.len() + text.len() + ENTRY_BYTES;
        self.entries[group].push((key.into(), text.into()));
    }

    fn result(&self, entries: &mut [Entry]) -> Option<Vec<u8>> {
        if entries.is_empty() {
            return None;
        }
        let mut out = Vec::new();
        match &self.form {
            Form::Text { separator, max_bytes, binary } => {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                for (i, (_, text)) in entries.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(separator.as_bytes());
                    }
                    out.extend_from_slice(text);
                    if out.len() as u64 > *max_bytes {
                        let mut end = *max_bytes as usize;
                        // Text is cut between characters.
                        while !*binary && out[end] & 0xC0 == 0x80 {
                            end -= 1;
                        }
                        out.truncate(end);
                        break;
                    }
                }
            }
            Form::JsonArray => {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                out.push(b'[');
                for (i, (_, json)) in entries.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    out.extend_from_slice(json);
                }
                out.push(b']');
            }
            Form::JsonObject => {
                // MySQL's object: the last of equal keys, ordered by length, then bytes.
                let members: BTreeMap<(usize, &[u8]), &[u8]> = entries.iter().map(|(key, json)| ((key.len(), key.as_ref()), json.as_ref())).collect();
                out.push(b'{');
                for (i, ((_, key), json)) in members.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    let mut quoted = String::new();
                    json::push_quoted(&String::from_utf8_lossy(key), &mut quoted);
                    out.extend_from_slice(quoted.as_bytes());
                    out.extend_from_slice(b": ");
                    out.extend_from_slice(json);
                }
                out.push(b'}');
            }
        }
        Some(out)
    }
}

/// The only element of a JSON array's text.
fn element(array: &str) -> &str {
    array.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or("null")
}

impl GroupState for Concat {
    fn resize(&mut self, len: usize) {
        self.entries.resize_with(len, Vec::new);
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        match self.form {
            Form::JsonObject => {
                let (keys, values) = (args[0].as_string_view(), args[1].as_string_view());
                for (row, &group) in groups.iter().enumerate() {
                    if keys.is_null(row) {
                        return Err(user(null_object_key()));
                    }
                    self.add(group, keys.value(row).as_bytes(), element(values.value(row)).as_bytes());
                }
            }
            Form::Text { binary: true, .. } => {
                let blobs = args[0].as_binary_view();
                let orders: Option<&BinaryViewArray> = args.get(1).and_then(|a| a.as_binary_view_opt());
                for (row, &group) in groups.iter().enumerate().filter(|(row, _)| blobs.is_valid(*row)) {
                    let order = orders.filter(|o| o.is_valid(row)).map_or(&[][..], |o| o.value(row));
                    self.add(group, order, blobs.value(row));
                }
            }
            _ => {
                let texts = args[0].as_string_view();
                let orders: Option<&BinaryViewArray> = args.get(1).and_then(|a| a.as_binary_view_opt());
                let json = matches!(self.form, Form::JsonArray);
                for (row, &group) in groups.iter().enumerate() {
                    let order = orders.filter(|o| o.is_valid(row)).map_or(&[][..], |o| o.value(row));
                    if json {
                        self.add(group, order, element(texts.value(row)).as_bytes());
                    } else if texts.is_valid(row) {
                        self.add(group, order, texts.value(row).as_bytes());
                    }
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let blobs = states[0].as_binary_view();
        for (i, &group) in groups.iter().enumerate() {
            let mut blob = blobs.value(i);
            let mut part = || {
                let (len, rest) = blob.split_first_chunk::<4>()?;
                let (bytes, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
                blob = rest;
                Some(bytes)
            };
            while let (Some(key), Some(text)) = (part(), part()) {
                self.add(group, key, text);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let mut results = Vec::with_capacity(len);
        for group in 0..len {
            let mut entries = std::mem::take(&mut self.entries[group]);
            results.push(self.result(&mut entries));
            self.entries[group] = entries;
        }
        if matches!(self.form, Form::Text { binary: true, .. }) {
            return Ok(Arc::new(BinaryViewArray::from_iter(results)));
        }
        let mut out = StringViewBuilder::with_capacity(len);
        results.into_iter().for_each(|result| out.append_option(result.map(|text| String::from_utf8_lossy(&text).into_owned())));
        Ok(Arc::new(out.finish()))
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let mut out = BinaryViewBuilder::with_capacity(len);
        let mut blob = Vec::new();
        for entries in &self.entries[..len] {
            blob.clear();
            for (key, text) in entries {
                for part in [key.as_ref(), text.as_ref()] {
                    blob.extend_from_slice(&(part.len() as u32).to_le_bytes());
                    blob.extend_from_slice(part);
                }
            }
            out.append_value(&blob);
        }
        Ok(vec![Arc::new(out.finish())])
    }

    fn forget(&mut self, len: usize) {
        self.bytes -= self.entries.drain(..len).flatten().map(|(key, text)| key.len() + text.len() + ENTRY_BYTES).sum::<usize>();
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::BinaryView]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.entries.capacity() * size_of::<Vec<Entry>>()
    }
}
