//! Medians of repeated measurements: on a shared machine the mean belongs to the neighbours.

/// The middle of `values`, the lower one of two; 0 of none.
pub fn median(values: impl IntoIterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// The middle of `values`, the lower one of two; 0 of none.
pub fn median_f64(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// `a / b`, to three decimals; absent without a `b`.
pub fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| (a / b * 1_000.0).round() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one() {
        assert_eq!(median([9, 1, 5]), 5);
        assert_eq!(median([4, 1]), 1);
        assert_eq!(median([]), 0);
        assert!((median_f64([2.5, 0.5, 1.5]) - 1.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_ratio_needs_something_below() {
        assert_eq!(ratio(1.0, 0.0), None);
        assert!(ratio(1.0, 3.0).is_some_and(|ratio| (ratio - 0.333).abs() < 1e-9));
    }
}
