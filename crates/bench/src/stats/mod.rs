//! What is counted and timed: histograms, figures by operation, latency over time, CPU, and medians.

mod figures;
mod latency;
mod median;
mod timeline;

pub use figures::{Board, Figures, Operation, Verdict};
pub(crate) use latency::human;
pub use latency::{Latency, Percentiles};
pub use median::{median, median_f64, ratio};
pub use timeline::{Point, Timeline};
