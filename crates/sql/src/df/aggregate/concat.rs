//! Aggregates that collect texts: GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use highkey_types::{Warning, errors, json};

use super::GroupState;
use crate::df::context::{Owner, Shared};
use crate::df::error::{null_object_key, user};

#[derive(Debug)]
enum Form {
    /// `max_bytes` is `group_concat_max_len`; `binary`: bytes, not text.
    Text { separator: Arc<str>, max_bytes: u64, binary: bool, teller: Teller },
    JsonArray,
    JsonObject,
}

/// Whom GROUP_CONCAT tells that it cut a result: the query that the plan works for, in an attempt at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::df) struct Teller {
    owner: Arc<Owner>,
    attempt: usize,
}

impl Teller {
    pub fn of(shared: &Shared) -> Teller {
        Teller { owner: shared.owner.clone(), attempt: shared.attempt() }
    }

    /// `rows`: the number of each row that was cut.
    fn tell(&self, rows: &[u64]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.owner.shared()?.evaluate(self.attempt, |cx| rows.iter().for_each(|row| cx.warn(Warning::warning(errors::cut_value_group_concat(*row)))));
        Ok(())
    }
}

/// Rows that any such aggregate has had. The states of a group come back from spill files in any order; the numbers of its rows tell which were first.
static ROWS: AtomicU64 = AtomicU64::new(0);

/// A row: order key and text, or object key and JSON.
#[derive(Debug)]
struct Entry {
    key: Box<[u8]>,
    row: u64,
    text: Box<[u8]>,
}

impl Entry {
    fn bytes(&self) -> usize {
        size_of::<Entry>() + self.key.len() + self.text.len()
    }
}

/// A group's rows so far, as many as may show in its result.
#[derive(Debug)]
struct Group {
    entries: Vec<Entry>,
    /// Bytes of their texts and the separators between them.
    length: u64,
    /// Beyond this length, those behind the end of the result are dropped.
    most: u64,
}

impl Group {
    fn new(longest: u64) -> Group {
        Group { entries: Vec::new(), length: 0, most: longest.saturating_mul(2) }
    }

    fn sort(&mut self) {
        self.entries.sort_by(|a, b| {
            // Without ORDER BY all keys are empty. Comparing nothing is not free: memcmp may look at where it would be, and fault there.
            let keys = if a.key.is_empty() && b.key.is_empty() { std::cmp::Ordering::Equal } else { a.key.cmp(&b.key) };
            keys.then(a.row.cmp(&b.row))
        });
    }

    /// Drops what does not show in a result of `longest` bytes; returns what it took.
    fn cut(&mut self, separator: usize, longest: u64) -> usize {
        self.sort();
        self.length = 0;
        let mut shown = 0;
        for entry in &self.entries {
            if shown > 0 {
                self.length += separator as u64;
            }
            self.length += entry.text.len() as u64;
            shown += 1;
            if self.length > longest {
                break;
            }
        }
        self.most = self.length.saturating_add(longest);
        self.entries.drain(shown..).map(|entry| entry.bytes()).sum()
    }
}

#[derive(Debug)]
pub(super) struct Concat {
    form: Form,
    groups: Vec<Group>,
    bytes: usize,
    /// Rows that results show so far, whole or cut: those that MySQL counts.
    shown: u64,
}

impl Concat {
    pub fn text(separator: Arc<str>, max_bytes: u64, binary: bool, teller: Teller) -> Concat {
        Concat::new(Form::Text { separator, max_bytes, binary, teller })
    }

    pub fn json_array() -> Concat {
        Concat::new(Form::JsonArray)
    }

    pub fn json_object() -> Concat {
        Concat::new(Form::JsonObject)
    }

    fn new(form: Form) -> Concat {
        Concat { form, groups: Vec::new(), bytes: 0, shown: 0 }
    }

    fn add(&mut self, group: usize, key: &[u8], row: u64, text: &[u8]) {
        let entry = Entry { key: key.into(), row, text: text.into() };
        self.bytes += entry.bytes();
        let group = &mut self.groups[group];
        let (separator, longest) = self.form.limits();
        if !group.entries.is_empty() {
            group.length += separator as u64;
        }
        group.length += text.len() as u64;
        group.entries.push(entry);
        if group.length > group.most {
            self.bytes -= group.cut(separator, longest);
        }
    }
}

impl Form {
    /// Bytes of a separator, and of the longest result.
    fn limits(&self) -> (usize, u64) {
        match self {
            Form::Text { separator, max_bytes, .. } => (separator.len(), *max_bytes),
            Form::JsonArray | Form::JsonObject => (0, u64::MAX),
        }
    }

    /// `shown` counts the rows of texts, `cut` gets the number of the one that was cut.
    fn result(&self, group: &mut Group, shown: &mut u64, cut: &mut Vec<u64>) -> Option<Vec<u8>> {
        if group.entries.is_empty() {
            return None;
        }
        let mut out = Vec::new();
        match self {
            Form::Text { separator, max_bytes, binary, .. } => {
                group.sort();
                for (i, entry) in group.entries.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(separator.as_bytes());
                    }
                    out.extend_from_slice(&entry.text);
                    *shown += 1;
                    if out.len() as u64 > *max_bytes {
                        cut.push(*shown);
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
                group.sort();
                out.push(b'[');
                for (i, entry) in group.entries.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    out.extend_from_slice(&entry.text);
                }
                out.push(b']');
            }
            Form::JsonObject => {
                group.entries.sort_by_key(|entry| entry.row);
                // MySQL's object: the last of equal keys, ordered by length, then bytes.
                let members: BTreeMap<(usize, &[u8]), &[u8]> =
                    group.entries.iter().map(|entry| ((entry.key.len(), entry.key.as_ref()), entry.text.as_ref())).collect();
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

/// The numbers of the next rows, the first of them.
pub(super) fn next_rows(rows: usize) -> u64 {
    ROWS.fetch_add(rows as u64, Ordering::Relaxed)
}

impl GroupState for Concat {
    fn resize(&mut self, len: usize) {
        let (_, longest) = self.form.limits();
        self.groups.resize_with(len, || Group::new(longest));
    }

    fn update(&mut self, args: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let first = next_rows(groups.len());
        match self.form {
            Form::JsonObject => {
                let (keys, values) = (args[0].as_string_view(), args[1].as_string_view());
                for (row, &group) in groups.iter().enumerate() {
                    if keys.is_null(row) {
                        return Err(user(null_object_key()));
                    }
                    self.add(group, keys.value(row).as_bytes(), first + row as u64, element(values.value(row)).as_bytes());
                }
            }
            Form::Text { binary: true, .. } => {
                let blobs = args[0].as_binary_view();
                let orders: Option<&BinaryViewArray> = args.get(1).and_then(|a| a.as_binary_view_opt());
                for (row, &group) in groups.iter().enumerate().filter(|(row, _)| blobs.is_valid(*row)) {
                    let order = orders.filter(|o| o.is_valid(row)).map_or(&[][..], |o| o.value(row));
                    self.add(group, order, first + row as u64, blobs.value(row));
                }
            }
            _ => {
                let texts = args[0].as_string_view();
                let orders: Option<&BinaryViewArray> = args.get(1).and_then(|a| a.as_binary_view_opt());
                let json = matches!(self.form, Form::JsonArray);
                for (row, &group) in groups.iter().enumerate() {
                    let order = orders.filter(|o| o.is_valid(row)).map_or(&[][..], |o| o.value(row));
                    if json {
                        self.add(group, order, first + row as u64, element(texts.value(row)).as_bytes());
                    } else if texts.is_valid(row) {
                        self.add(group, order, first + row as u64, texts.value(row).as_bytes());
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
            while let Some((row, rest)) = blob.split_first_chunk::<8>() {
                blob = rest;
                let mut part = || {
                    let (len, rest) = blob.split_first_chunk::<4>()?;
                    let (bytes, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
                    blob = rest;
                    Some(bytes)
                };
                let (Some(key), Some(text)) = (part(), part()) else { break };
                self.add(group, key, u64::from_le_bytes(*row), text);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, len: usize) -> Result<ArrayRef> {
        let (form, shown) = (&self.form, &mut self.shown);
        let mut cut = Vec::new();
        let results: Vec<Option<Vec<u8>>> = self.groups[..len].iter_mut().map(|group| form.result(group, shown, &mut cut)).collect();
        if let Form::Text { teller, .. } = form {
            teller.tell(&cut)?;
        }
        if matches!(form, Form::Text { binary: true, .. }) {
            return Ok(Arc::new(BinaryViewArray::from_iter(results)));
        }
        let mut out = StringViewBuilder::with_capacity(len);
        results.into_iter().for_each(|result| out.append_option(result.map(|text| String::from_utf8_lossy(&text).into_owned())));
        Ok(Arc::new(out.finish()))
    }

    fn partial(&mut self, len: usize) -> Result<Vec<ArrayRef>> {
        let mut out = BinaryViewBuilder::with_capacity(len);
        let mut blob = Vec::new();
        for group in &self.groups[..len] {
            blob.clear();
            for Entry { key, row, text } in &group.entries {
                blob.extend_from_slice(&row.to_le_bytes());
                for part in [key, text] {
                    blob.extend_from_slice(&(part.len() as u32).to_le_bytes());
                    blob.extend_from_slice(part);
                }
            }
            out.append_value(&blob);
        }
        Ok(vec![Arc::new(out.finish())])
    }

    fn forget(&mut self, len: usize) {
        self.bytes -= self.groups.drain(..len).flat_map(|group| group.entries).map(|entry| entry.bytes()).sum::<usize>();
    }

    fn partial_types(&self) -> Vec<DataType> {
        vec![DataType::BinaryView]
    }

    fn bytes(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Group>()
    }
}
