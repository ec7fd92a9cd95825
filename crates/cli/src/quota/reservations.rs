//! `sereno quota reservations`

use super::{
    node::{self, Node, spelled},
    quotas,
};
use crate::{
    failure::Failure,
    locks::{InNamespace, Located},
    output::{Output, human, table},
    values,
};
use clap::{Args, ValueEnum};
use sereno_client::{
    Client, ListReservations,
    api::{Reservation, ReservationState},
};

/// Which reservations to list.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReservationsArgs {
    /// Only with something of this node or of what is below it. [default: of all]
    #[arg(value_name = "NODE", value_parser = node::node)]
    node: Option<Node>,
    /// Only of this owner.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// Only in this state.
    #[arg(long, value_enum)]
    state: Option<StateArg>,
    /// So many at most: 1 to 1000000.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = values::count(1_000_000))]
    limit: u64,
    #[command(flatten)]
    at: InNamespace,
    #[command(flatten)]
    output: Output,
}

/// See [`ReservationState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StateArg {
    Waiting,
    Reserved,
    InFlight,
    /// An operator has to settle it.
    Quarantined,
}

impl From<StateArg> for ReservationState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Waiting => Self::Waiting,
            StateArg::Reserved => Self::Reserved,
            StateArg::InFlight => Self::InFlight,
            StateArg::Quarantined => Self::Quarantined,
        }
    }
}

const PAGE_ROWS: usize = 1_000;

pub(super) async fn run(client: &Client, args: ReservationsArgs) -> Result<u8, Failure> {
    let quotas = quotas(client, &args.at);
    let (quota, path) = match args.node {
        Some(Node { quota, path }) => (Some(quota), Some(path)),
        None => (None, None),
    };
    let state = args.state.map(Into::into);
    let mut list =
        ListReservations { quota, path, owner: args.owner, state, ..ListReservations::default() };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut rows: Vec<Reservation> = Vec::new();
    let mut more = true;
    while more && rows.len() < limit {
        list.limit = Some((limit - rows.len()).min(PAGE_ROWS));
        let page = quotas.reservations(&list).await?;
        rows.extend(page.reservations);
        more = page.next_cursor.is_some();
        list.cursor = page.next_cursor;
    }
    let rows: Vec<_> = rows.into_iter().map(|row| args.at.locate(row)).collect();
    args.output.answer(&rows, |rows| text(rows, more))?;
    Ok(0)
}

fn text(rows: &[Located<Reservation>], more: bool) -> String {
    let rows: Vec<_> = rows.iter().map(|row| cells(&row.thing)).collect();
    let text = table(&HEAD, &rows);
    if more { text + "\n(there are more: raise --limit)" } else { text }
}

pub(super) const HEAD: [&str; 8] =
    ["RESERVATION", "STATE", "OWNER", "AMOUNTS", "AGE", "EXPIRES IN", "THEN", "FENCE"];

/// One row.
pub(super) fn cells(it: &Reservation) -> Vec<String> {
    let expires_in = match it.state {
        ReservationState::Quarantined => "-".into(),
        _ => human(it.expires_in_ms),
    };
    vec![
        it.reservation_id.clone(),
        it.state.to_string(),
        it.owner.clone(),
        spelled(&it.items),
        human(it.age_ms),
        expires_in,
        it.on_expiry.to_string(),
        it.fence.map_or("-".into(), |fence| fence.to_string()),
    ]
}
