//! A server's times and answers: kept in a folder, and side by side as a table.
//!
//! A folder holds `times.csv` (a line a run) and `answers/NN.tsv`. The script for DuckDB writes the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::answers::Answer;
use super::queries;
use crate::server::Result;

/// Of one server.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub name: String,
    /// In the order in which they were measured.
    pub series: Vec<Series>,
    /// By query.
    pub answers: BTreeMap<usize, Answer>,
}

/// Times in one mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// `serial`, `parallel`, `dop 4`, a hint; empty for a server without modes.
    pub mode: String,
    /// By query: seconds of each run, `None` for one that exceeded the limit.
    pub runs: BTreeMap<usize, Vec<Option<f64>>>,
}

impl Series {
    /// Seconds; `None` if there is no run, or one exceeded the limit.
    fn median(&self, query: usize) -> Option<f64> {
        let mut seconds = self.runs.get(&query)?.iter().copied().collect::<Option<Vec<f64>>>()?;
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }

    fn medians(&self, queries: &[usize]) -> Option<Vec<f64>> {
        queries.iter().map(|&query| self.median(query)).collect()
    }
}

const HEAD: &str = "mode,query,seconds";

impl Results {
    /// The series of this mode, added if it is new.
    pub fn series_mut(&mut self, mode: &str) -> &mut Series {
        let at = self.series.iter().position(|s| s.mode == mode).unwrap_or_else(|| {
            self.series.push(Series { mode: mode.into(), ..Series::default() });
            self.series.len() - 1
        });
        &mut self.series[at]
    }

    /// Writes the folder.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder.join("answers"))?;
        let mut csv = format!("{HEAD}\n");
        for series in &self.series {
            for (query, runs) in &series.runs {
                for run in runs {
                    let _ =
                        writeln!(csv, "{},{query},{}", series.mode.replace(',', ";"), run.map(|s| format!("{s:.6}")).unwrap_or_default());
                }
            }
        }
        std::fs::write(folder.join("times.csv"), csv)?;
        self.answers.iter().try_for_each(|(query, answer)| answer.write(&folder.join(format!("answers/{query:02}.tsv"))))
    }

    /// Reads a folder, whose name is the server's.
    pub fn read(folder: &Path) -> Result<Results> {
        let name = folder.file_name().ok_or("a folder of results has a name")?.to_string_lossy().into_owned();
        let mut results = Results { name, ..Results::default() };
        let file = folder.join("times.csv");
        let csv = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        for line in csv.lines().skip(1) {
            let parse = || {
                let [mode, query, seconds] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
                let seconds = if seconds.is_empty() { None } else { Some(seconds.parse().ok()?) };
                Some((mode, query.parse().ok()?, seconds))
            };
            let (mode, query, seconds) = parse().ok_or_else(|| format!("{}: not {HEAD}: {line}", file.display()))?;
            results.series_mut(mode).runs.entry(query).or_default().push(seconds);
        }
        for query in 1..=queries::COUNT {
            let file = folder.join(format!("answers/{query:02}.tsv"));
            if file.exists() {
                results.answers.insert(query, Answer::read(&file)?);
            }
        }
        Ok(results)
    }

    /// What [`table`] compares by: parallel, or all there is.
    fn best(&self) -> Option<&Series> {
        self.series.iter().find(|s| s.mode == "parallel").or(self.series.first())
    }
}

/// Each query on which two differ, for people. The first of `all` that has an answer to a query is what the others are compared with.
pub fn differences(all: &[&Results]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for query in 1..=queries::COUNT {
        let mut answers = all.iter().filter_map(|r| Some((&r.name, r.answers.get(&query)?)));
        let Some((theirs, reference)) = answers.next() else { continue };
        for (mine, answer) in answers {
            if let Some(difference) = answer.difference(reference, queries::order(query)) {
                found.push((query, format!("query {query}: {mine} differs from {theirs}: {difference}")));
            }
        }
    }
    found
}

/// A Markdown table: a line a query, a column a server and mode, in milliseconds; total and geometric mean of the queries that all have
/// finished.
/// The ratio is that of the first server to the one after it.
pub fn table(all: &[Results], differences: &[(usize, String)]) -> String {
    let queries: Vec<usize> =
        (1..=queries::COUNT).filter(|q| all.iter().any(|r| r.series.iter().any(|s| s.runs.contains_key(q)))).collect();
    let finished: Vec<usize> =
        queries.iter().copied().filter(|&q| all.iter().flat_map(|r| &r.series).all(|s| s.median(q).is_some())).collect();
    // Name, and the figures of a query or of several.
    type Line<'a> = Box<dyn Fn(&[usize]) -> Option<f64> + 'a>;
    let geometric = |of: Vec<f64>| (of.iter().map(|s| s.ln()).sum::<f64>() / of.len() as f64).exp();
    let mut ratios: Vec<(String, Line)> = Vec::new();
    let ratio = |over: &'_ Series, under: &'_ Series, queries: &[usize]| -> Option<f64> {
        let (over, under) = (over.medians(queries)?, under.medians(queries)?);
        Some(geometric(over.iter().zip(&under).map(|(a, b)| a / b).collect()))
    };
    for results in all {
        if let [serial, parallel] = ["serial", "parallel"].map(|mode| results.series.iter().find(|s| s.mode == mode))
            && let (Some(serial), Some(parallel)) = (serial, parallel)
        {
            ratios.push((format!("{} serial / parallel", results.name), Box::new(move |q| ratio(serial, parallel, q))));
        }
    }
    if let Some((first, others)) = all.split_first() {
        for other in others {
            if let (Some(mine), Some(theirs)) = (first.best(), other.best()) {
                ratios.push((
                    format!("{} {} / {}", first.name, mine.mode, other.name).replace("  ", " "),
                    Box::new(move |q| ratio(mine, theirs, q)),
                ));
            }
        }
    }
    let columns: Vec<(&Results, &Series)> = all.iter().flat_map(|r| r.series.iter().map(move |s| (r, s))).collect();
    let mut out = String::from("\ntpch (ms, median [min-max])\n\n| query |");
    columns.iter().for_each(|(r, s)| out.push_str(&format!(" {} |", format!("{} {}", r.name, s.mode).trim())));
    ratios.iter().for_each(|(name, _)| out.push_str(&format!(" {name} |")));
    out.push_str(" answers |\n|---|");
    out.push_str(&"---|".repeat(columns.len() + ratios.len() + 1));
    out.push('\n');
    let figure = |out: &mut String, figure: Option<f64>| out.push_str(&figure.map_or(" - |".into(), |f| format!(" {f:.2} |")));
    for &query in &queries {
        let _ = write!(out, "| {query} |");
        for (_, series) in &columns {
            let runs = series.runs.get(&query).map_or(&[][..], |runs| runs);
            let seconds = || runs.iter().flatten().copied();
            match series.median(query) {
                Some(median) => {
                    let (low, high) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max));
                    let _ = write!(out, " {} [{}-{}] |", ms(median), ms(low), ms(high));
                }
                None if runs.is_empty() => out.push_str(" - |"),
                None => out.push_str(" over the limit |"),
            }
        }
        ratios.iter().for_each(|(_, of)| figure(&mut out, of(&[query])));
        let answers = all.iter().filter(|r| r.answers.contains_key(&query)).count();
        let verdict = match differences.iter().any(|d| d.0 == query) {
            true => "DIFFER",
            false if answers > 1 => "equal",
            false => "of one server only",
        };
        let _ = writeln!(out, " {verdict} |");
    }
    let of_all = if finished.len() == queries.len() { String::new() } else { format!(" of {}", finished.len()) };
    for (name, of) in [("total", (|m: Vec<f64>| m.iter().sum()) as fn(Vec<f64>) -> f64), ("geometric mean", geometric)] {
        let _ = write!(out, "| {name}{of_all} |");
        columns.iter().for_each(|(_, s)| {
            let _ = write!(out, " {} |", s.medians(&finished).map_or("-".into(), |m| ms(of(m))));
        });
        for (_, ratio) in &ratios {
            // A ratio of totals says little that the totals do not.
            figure(&mut out, ratio(&finished).filter(|_| name != "total"));
        }
        out.push_str(" |\n");
    }
    out
}

/// Milliseconds, with a digit behind the point below 100.
fn ms(seconds: f64) -> String {
    let ms = seconds * 1000.0;
    if ms < 100.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

#[cfg(test)]
mod tests {
    use super::super::answers::Kind;
    use super::*;

    fn results(name: &str, times: &[(&str, usize, &[Option<f64>])], cell: &str) -> Results {
        let mut results = Results { name: name.into(), ..Results::default() };
        for &(mode, query, runs) in times {
            results.series_mut(mode).runs.insert(query, runs.to_vec());
            results.answers.insert(query, Answer { kinds: vec![Kind::Number], rows: vec![vec![Some(cell.into())]] });
        }
        results
    }

    #[test]
    fn a_table_of_two_servers() {
        let ours = [
            ("serial", 14, &[Some(0.4), Some(0.2), Some(0.3)][..]),
            ("parallel", 14, &[Some(0.1)]),
            ("serial", 6, &[Some(0.02)]),
            ("parallel", 6, &[Some(0.02)]),
        ];
        let a = results("a", &ours, "1.0");
        let b = results("b", &[("", 14, &[Some(0.2)]), ("", 6, &[None])], "1");
        let all = [a, b];
        assert_eq!(differences(&all.each_ref()), []);
        let expected = "\ntpch (ms, median [min-max])\n\n| query | a serial | a parallel | b | a serial / parallel | a parallel / b | answers |\n\
            |---|---|---|---|---|---|---|\n\
            | 6 | 20.0 [20.0-20.0] | 20.0 [20.0-20.0] | over the limit | 1.00 | - | equal |\n\
            | 14 | 300 [200-400] | 100 [100-100] | 200 [200-200] | 3.00 | 0.50 | equal |\n\
            | total of 1 | 300 | 100 | 200 | - | - | |\n\
            | geometric mean of 1 | 300 | 100 | 200 | 3.00 | 0.50 | |\n";
        assert_eq!(table(&all, &[]), expected);
        let wrong = results("c", &[("", 6, &[Some(1.0)])], "2");
        let found = differences(&[&all[0], &wrong]);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.starts_with("query 6: c differs from a"));
        assert!(table(&all, &found).contains("| DIFFER |"));
    }

    #[test]
    fn folders_hold_results() {
        let folder = std::env::temp_dir().join(format!("highkey-lab-results-{}", std::process::id())).join("a");
        let written = results("a", &[("serial", 1, &[Some(0.25), None]), ("dop 2", 3, &[Some(2.0)])], "7");
        written.write(&folder).unwrap();
        let read = Results::read(&folder).unwrap();
        assert_eq!((read.name, read.series, read.answers), (written.name, written.series, written.answers));
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
