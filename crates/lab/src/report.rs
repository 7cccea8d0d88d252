//! Cells of measurements, as a table, a CSV file and an SVG chart per row group.

use std::fmt::Write as _;
use std::path::Path;

use plotters::prelude::*;

use crate::server::{Result, Server};

/// All measurements of an experiment.
pub struct Report {
    /// File name stem and title.
    pub name: &'static str,
    /// What a figure is: `rows/s`.
    pub unit: &'static str,
    /// What the columns vary: `streams`.
    pub axis: &'static str,
    pub better: Better,
    pub servers: Vec<String>,
    pub cells: Vec<Cell>,
}

/// Which figures are the good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
    /// Figures that explain others: no server is compared.
    Neither,
}

/// The repeats of one cell on one server.
pub struct Cell {
    /// Row group: the kind of table.
    pub group: String,
    /// Position on the axis.
    pub at: u64,
    /// Index into [`Report::servers`].
    pub server: usize,
    pub figures: Vec<f64>,
    /// Latencies in ms, where the experiment has them: average, 95th percentile, maximum.
    pub latency_ms: Option<[f64; 3]>,
}

impl Cell {
    /// Median, smallest and largest figure.
    pub fn summary(&self) -> (f64, f64, f64) {
        let mut sorted = self.figures.clone();
        sorted.sort_by(f64::total_cmp);
        (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
    }
}

/// Whole numbers, and one digit behind the point below 1000, two below 10.
fn figure(figure: f64) -> String {
    match figure {
        ..10.0 => format!("{figure:.2}"),
        ..1000.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

/// Of several figures of one cell: a report's name and unit, whether more is better, and the figure, where the server tells it.
pub type Figure<M> = (&'static str, &'static str, Better, fn(&M) -> Option<f64>);

/// Reports of several figures, without cells.
pub fn reports_of<M>(figures: &[Figure<M>], axis: &'static str, servers: &[Server]) -> Vec<Report> {
    figures.iter().map(|&(name, unit, better, _)| Report::new(name, unit, axis, better, servers)).collect()
}

/// Adds a cell to each of them, of what was measured on every server, and tells of it under this name.
pub fn push_cells<M>(reports: &mut [Report], figures: &[Figure<M>], name: &str, group: &str, at: u64, measured: &[Vec<M>]) {
    for (report, (_, unit, _, figure)) in reports.iter_mut().zip(figures) {
        for (server, measured) in measured.iter().enumerate() {
            let figures: Vec<f64> = measured.iter().filter_map(figure).collect();
            eprintln!("{name}, {}: {figures:.1?} {unit}", report.servers[server]);
            report.push(Cell { group: group.into(), at, server, figures, latency_ms: None });
        }
    }
}

impl Report {
    /// Without cells.
    pub fn new(name: &'static str, unit: &'static str, axis: &'static str, better: Better, servers: &[Server]) -> Report {
        Report { name, unit, axis, better, servers: servers.iter().map(|s| s.name.clone()).collect(), cells: Vec::new() }
    }

    /// Adds a cell; one without figures (the server could not tell) is left out.
    pub fn push(&mut self, cell: Cell) {
        if !cell.figures.is_empty() {
            self.cells.push(cell);
        }
    }

    fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !groups.contains(&cell.group.as_str()) {
                groups.push(&cell.group);
            }
        }
        groups
    }

    fn axis_values(&self) -> Vec<u64> {
        let mut values: Vec<u64> = self.cells.iter().map(|c| c.at).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn cell(&self, group: &str, server: usize, at: u64) -> Option<&Cell> {
        self.cells.iter().find(|c| c.group == group && c.server == server && c.at == at)
    }

    /// A Markdown table: a line per group and server, with the ratio to the best other server for the first one.
    pub fn table(&self) -> String {
        let mut out = format!("\n{} ({}, median [min-max])\n\n| {} | server |", self.name, self.unit, "table");
        let axis = self.axis_values();
        for at in &axis {
            let _ = write!(out, " {at} {} |", self.axis);
        }
        out.push_str("\n|---|---|");
        axis.iter().for_each(|_| out.push_str("---|"));
        out.push('\n');
        for group in self.groups() {
            for (server, name) in self.servers.iter().enumerate() {
                let _ = write!(out, "| {group} | {name} |");
                for &at in &axis {
                    match self.cell(group, server, at) {
                        Some(cell) => {
                            let (median, low, high) = cell.summary();
                            let _ = write!(out, " {} [{}-{}]", figure(median), figure(low), figure(high));
                            if let Some([average, p95, max]) = cell.latency_ms {
                                let _ = write!(out, " {average:.2}/{p95:.2}/{max:.1} ms");
                            }
                            out.push_str(" |");
                        }
                        None => out.push_str(" - |"),
                    }
                }
                out.push('\n');
            }
            if self.servers.len() > 1 && self.better != Better::Neither {
                let _ = write!(out, "| {group} | {} / best other |", self.servers[0]);
                for &at in &axis {
                    let median = |server: usize| self.cell(group, server, at).map(|c| c.summary().0);
                    let better = if self.better == Better::More { f64::max } else { f64::min };
                    let best = (1..self.servers.len()).filter_map(median).fold(f64::NAN, better);
                    match median(0).filter(|_| best.is_finite()) {
                        Some(first) => write!(out, " {:.2} |", first / best),
                        None => write!(out, " - |"),
                    }
                    .expect("a String takes all");
                }
                out.push('\n');
            }
        }
        out
    }

    /// Writes `NAME.csv` (one line a repeat) and `NAME-GROUP.svg`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        let mut csv = format!("table,server,{},repeat,{}\n", self.axis, self.unit);
        for cell in &self.cells {
            for (repeat, figure) in cell.figures.iter().enumerate() {
                let _ = writeln!(csv, "{},{},{},{repeat},{}", cell.group, self.servers[cell.server], cell.at, self::figure(*figure));
            }
        }
        std::fs::write(directory.join(format!("{}.csv", self.name)), csv)?;
        for group in self.groups() {
            self.chart(group, &directory.join(format!("{}-{group}.svg", self.name)))?;
        }
        Ok(())
    }

    fn chart(&self, group: &str, file: &Path) -> Result<()> {
        let axis = self.axis_values();
        let top = self.cells.iter().filter(|c| c.group == group).map(|c| c.summary().0).fold(f64::MIN_POSITIVE, f64::max);
        let area = SVGBackend::new(file, (720, 440)).into_drawing_area();
        area.fill(&WHITE)?;
        let right = *axis.last().unwrap_or(&1) as f64;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .caption(format!("{} {group}: {}", self.name, self.unit), ("sans-serif", 18))
            .x_label_area_size(36)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..right * 1.05, 0.0..top * 1.1)?;
        chart.configure_mesh().x_desc(self.axis).y_label_formatter(&|&y| figure(y)).draw()?;
        for (server, name) in self.servers.iter().enumerate() {
            let color = Palette99::pick(server).to_rgba();
            let points: Vec<(f64, f64)> =
                axis.iter().filter_map(|&at| Some((at as f64, self.cell(group, server, at)?.summary().0))).collect();
            chart
                .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
                .label(name.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
            chart.draw_series(points.iter().map(|&p| Circle::new(p, 3, color.filled())))?;
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_two_servers() {
        let servers = ["a", "b"].map(|name| crate::server::parse(&format!("{name}=mysql://root@127.0.0.1:1")).unwrap());
        let table = |better| {
            let mut report = Report::new("size", "MiB", "indexes", better, &servers);
            let cell = |at, server, figures: &[f64]| Cell { group: "g".into(), at, server, figures: figures.to_vec(), latency_ms: None };
            report.push(cell(0, 0, &[3000.0, 1000.0, 2000.0]));
            report.push(cell(0, 1, &[4000.0]));
            report.push(cell(1, 0, &[92.5]));
            report.push(cell(2, 0, &[1.234]));
            report.push(cell(1, 1, &[]));
            report.table()
        };
        let expected = "\nsize (MiB, median [min-max])\n\n| table | server | 0 indexes | 1 indexes | 2 indexes |\n|---|---|---|---|---|\n\
            | g | a | 2000 [1000-3000] | 92.5 [92.5-92.5] | 1.23 [1.23-1.23] |\n| g | b | 4000 [4000-4000] | - | - |\n";
        assert_eq!(table(Better::Neither), expected);
        let expected = format!("{expected}| g | a / best other | 0.50 | - | - |\n");
        assert_eq!(table(Better::Less), expected);
        assert_eq!(table(Better::More), expected);
    }
}
