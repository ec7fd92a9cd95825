//! Looks at the pool from outside, as the service shows it, and writes down what changes: who waits, who has something,
//! and when that is gone. A crashed job can write nothing any more.

use crate::{
    pool::QUOTA,
    record::{Record, What, Who, now_us},
};
use sereno_client::{
    Error, ListReservations, Quotas,
    api::{Reservation, ReservationState},
};
use std::{collections::BTreeMap, io, time::Duration};

/// What was seen of each reservation: whose it is, its fence, and whether it waits.
type Seen = BTreeMap<String, (Who, u64, What)>;

/// Writes down what changes, for ever. A service that does not answer is asked again.
///
/// # Errors
/// The record cannot be written.
pub async fn observe(quotas: &Quotas, record: &mut Record, each: Duration) -> io::Result<()> {
    let (mut before, mut looked_us) = (Seen::new(), now_us());
    loop {
        // What is shown was there at this moment or later.
        let looks_us = now_us();
        match look(quotas).await {
            Ok(now) => {
                note_changes(&before, &now, [looked_us, looks_us], record)?;
                (before, looked_us) = (now, looks_us);
            }
            Err(error) => eprintln!("gpu-pool: {error}"),
        }
        tokio::time::sleep(each).await;
    }
}

async fn look(quotas: &Quotas) -> Result<Seen, Error> {
    let mut list = ListReservations { quota: Some(QUOTA.into()), ..ListReservations::default() };
    let mut seen = Seen::new();
    loop {
        let page = quotas.reservations(&list).await?;
        seen.extend(
            page.reservations.into_iter().map(|one| (one.reservation_id.clone(), told(one))),
        );
        list.cursor = page.next_cursor;
        if list.cursor.is_none() {
            return Ok(seen);
        }
    }
}

fn told(one: Reservation) -> (Who, u64, What) {
    let tenant = one.items.first().map(|item| item.path.clone()).unwrap_or_default();
    let gpus = one.items.iter().map(|item| item.amount).sum();
    let what = if one.state == ReservationState::Waiting { What::Queued } else { What::Held };
    (Who { tenant, job: one.owner, gpus }, one.fence.unwrap_or(0), what)
}

/// What is gone was there until the look before; what is new is there since this one. `looks_us`: when both began.
fn note_changes(
    before: &Seen,
    now: &Seen,
    looks_us: [u64; 2],
    record: &mut Record,
) -> io::Result<()> {
    let gone = before.iter().filter(|(id, _)| !now.contains_key(*id));
    for (who, fence, _) in gone.map(|(_, seen)| seen) {
        record.note_at(looks_us[0], What::Gone, who, *fence)?;
    }
    for (id, (who, fence, what)) in now {
        if before.get(id).is_none_or(|(_, _, was)| was != what) {
            record.note_at(looks_us[1], *what, who, *fence)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    #[test]
    fn only_changes_are_written_down() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut record = Record::append_to(&path).unwrap();
        let seen = |all: &[(&str, What)]| -> Seen {
            let who = |job: &str| Who { tenant: "a".into(), job: job.into(), gpus: 4 };
            all.iter().map(|(job, what)| ((*job).into(), (who(job), 7, *what))).collect()
        };
        let looks = [
            seen(&[("x", What::Held), ("y", What::Queued)]),
            seen(&[("x", What::Held), ("y", What::Queued)]),
            seen(&[("y", What::Held)]),
            seen(&[]),
        ];
        let mut before = Seen::new();
        for (number, now) in (1..).zip(looks) {
            note_changes(&before, &now, [number - 1, number], &mut record).unwrap();
            before = now;
        }
        let lines = record::read(&path).unwrap();
        let found: Vec<_> = lines.iter().map(|it| (it.at_us, it.job.as_str(), it.what)).collect();
        // `y` was held in one look alone: the lines are in the order in which they were written.
        let wanted = [
            (1, "x", What::Held),
            (1, "y", What::Queued),
            (2, "x", What::Gone),
            (3, "y", What::Held),
            (3, "y", What::Gone),
        ];
        assert_eq!(found, wanted);
    }
}
