//! Figures out of `/metrics`, of nodes and of etcd.

use crate::error::Error;
use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// All metrics of one process at one moment.
#[derive(Clone, Debug, Default)]
pub struct Scrape(String);

impl Scrape {
    /// Asks a process.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub async fn of(address: SocketAddr) -> Result<Self, Error> {
        let failed = |why: String| Error::Service { call: format!("metrics of {address}"), why };
        let text = get(address).await.map_err(|error| failed(error.to_string()))?;
        match text.split_once("\r\n\r\n") {
            Some((head, body)) if head.contains(" 200 ") => Ok(Self(body.into())),
            _ => Err(failed(text.chars().take(200).collect())),
        }
    }

    /// The sum of all series of this name whose labels contain `label`; 0 without any.
    pub fn value(&self, name: &str, label: &str) -> f64 {
        let series = self.series(name).filter(|(labels, _)| labels.contains(label));
        series.map(|(_, value)| value).sum()
    }

    /// A histogram's buckets.
    pub fn buckets(&self, name: &str) -> Buckets {
        let series = self.series(name);
        let bound = |labels: &str| labels.strip_prefix("{le=\"")?.split('"').next()?.parse().ok();
        Buckets(series.filter_map(|(labels, count)| Some((bound(labels)?, count))).collect())
    }

    fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
            let (labels, value) = rest.rsplit_once(' ')?;
            Some((labels, value.parse().ok()?))
        })
    }
}

/// HTTP/1.0, so that the answer ends with the connection: etcd's come in chunks otherwise.
async fn get(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

/// A histogram: how many were at most so many seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets(Vec<(f64, f64)>);

impl Buckets {
    /// Those that came after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |index: usize| earlier.0.get(index).map_or(0.0, |(_, count)| *count);
        let rest = self.0.iter().enumerate();
        Self(rest.map(|(index, &(bound, count))| (bound, count - before(index))).collect())
    }

    /// How many.
    pub fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// In microseconds; between two bounds as if evenly spread.
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        let wanted = self.count() * quantile;
        let (mut low, mut below) = (0.0, 0.0);
        for &(bound, count) in &self.0 {
            if count >= wanted && count > below {
                let high = if bound.is_finite() { bound } else { low };
                return ((low + (high - low) * (wanted - below) / (count - below)) * 1e6) as u64;
            }
            (low, below) = (bound, count);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE a histogram\na_bucket{le=\"0.01\"} 90\na_bucket{le=\"0.1\"} 100\n\
        a_bucket{le=\"+Inf\"} 100\nb_total{result=\"saved\"} 2\nb_total{result=\"failed\"} 1\nb_total_of_all 9\n";

    #[test]
    fn series_are_found_by_name_and_label() {
        let scrape = Scrape(TEXT.into());
        assert!((scrape.value("b_total", "saved") - 2.0).abs() < 1e-9);
        assert!((scrape.value("b_total", "") - 3.0).abs() < 1e-9);
        assert!(scrape.value("c", "").abs() < 1e-9);
    }

    #[test]
    fn quantiles_lie_between_the_bounds() {
        let all = Scrape(TEXT.into()).buckets("a_bucket");
        assert_eq!(all.quantile_us(0.45), 5_000);
        assert_eq!(all.quantile_us(0.95), 55_000);
        let earlier = Buckets(vec![(0.01, 90.0), (0.1, 90.0), (f64::INFINITY, 90.0)]);
        let later = all.since(&earlier);
        assert!((later.count() - 10.0).abs() < 1e-9);
        assert_eq!(later.quantile_us(0.5), 55_000);
        assert_eq!(Buckets::default().quantile_us(0.5), 0);
    }
}
