//! One picture: latency over time, a panel for each operation, with p50, p99 and p99.9 on a logarithmic scale.

use crate::{
    error::Error,
    stats::{Operation, Point, Timeline, human},
};
use plotters::{
    chart::ChartContext,
    coord::{Shift, combinators::LogCoord, types::RangedCoordu64},
    prelude::*,
};
use std::path::Path;

const WIDTH: u32 = 1_000;
const PANEL: u32 = 260;
/// What a line is called, its colour, and what it shows.
type Line = (&'static str, RGBColor, fn(&Point) -> u64);

const LINES: [Line; 3] = [
    ("p50", RGBColor(46, 125, 50), |point| point.latency.p50_us),
    ("p99", RGBColor(21, 101, 192), |point| point.latency.p99_us),
    ("p99.9", RGBColor(198, 40, 40), |point| point.latency.p999_us),
];

type Panel<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordu64, LogCoord<f64>>>;

/// Draws the picture into an SVG file. `marks`: where phases begin, and what they are called.
///
/// # Errors
/// The file cannot be written.
pub fn draw(path: &Path, timeline: &Timeline, marks: &[(u64, String)]) -> Result<(), Error> {
    let svg = svg(timeline, marks).map_err(|why| Error::Usage(format!("draw: {why}")))?;
    std::fs::write(path, svg).map_err(Error::path("write", path))
}

fn svg(timeline: &Timeline, marks: &[(u64, String)]) -> Result<String, String> {
    let panels: Vec<(Operation, Vec<Point>)> = Operation::ALL
        .into_iter()
        .map(|operation| (operation, timeline.points(operation)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let mut text = String::new();
    {
        let height = PANEL * panels.len().max(1) as u32;
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| error.to_string())?;
        for (area, (operation, points)) in
            root.split_evenly((panels.len().max(1), 1)).iter().zip(&panels)
        {
            panel(area, *operation, points, marks).map_err(|error| error.to_string())?;
        }
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    operation: Operation,
    points: &[Point],
    marks: &[(u64, String)],
) -> Result<(), Box<dyn std::error::Error>> {
    let last = points.iter().map(|point| point.second).max().unwrap_or(0);
    let slowest = points.iter().map(|point| point.latency.p999_us).max().unwrap_or(1);
    let fastest = points.iter().map(|point| point.latency.p50_us).min().unwrap_or(1);
    let (low, high) = (fastest.max(1) as f64 / 2.0, slowest.max(2) as f64 * 2.0);
    let title = format!("{}: latency from the intended start", operation.name());
    let mut chart: Panel<'_, '_> = ChartBuilder::on(area)
        .margin(12)
        .caption(title, ("sans-serif", 16))
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d(0..last.max(1), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_labels(6)
        .light_line_style(RGBColor(240, 240, 240))
        .y_label_formatter(&|micros| human(micros.round() as u64))
        .draw()?;
    for (second, name) in marks.iter().filter(|(second, _)| *second <= last) {
        chart.draw_series(LineSeries::new([(*second, low), (*second, high)], BLACK.mix(0.3)))?;
        let text = Text::new(name.clone(), (*second, high / 1.3), ("sans-serif", 11));
        chart.plotting_area().draw(&text)?;
    }
    for (label, color, figure) in LINES {
        let line = points.iter().map(|point| (point.second, figure(point).max(1) as f64));
        chart
            .draw_series(LineSeries::new(line, color.stroke_width(2)))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_panel_for_each_operation_that_occurred() {
        let mut timeline = Timeline::default();
        for second in 0..10 {
            for operation in [Operation::Acquire, Operation::Release] {
                let latency = Duration::from_micros(100 + second * 1_000);
                timeline.record(operation, Duration::from_secs(second), latency);
            }
        }
        let marks = [(0, "warm-up".to_owned()), (3, "steady".to_owned()), (99, "never".to_owned())];
        let svg = svg(&timeline, &marks).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["acquire: latency", "release: latency", "steady", "p99.9"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("renew") && !svg.contains("never"));
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(svg(&Timeline::default(), &[]).unwrap().starts_with("<svg"));
    }
}
