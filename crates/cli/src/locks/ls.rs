//! `sereno locks ls`

use super::{InNamespace, Located};
use crate::{
    failure::Failure,
    output::{Output, human, table},
    values,
};
use clap::Args;
use sereno_client::{Client, ListLocks, api::LockRow};

/// Which locks to list.
#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    at: InNamespace,
    /// Only names that begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// Only of this owner.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// So many at most: 1 to 1000000.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = values::count(LIMIT_MAX))]
    limit: u64,
    #[command(flatten)]
    output: Output,
}

/// A namespace has no more locks at once.
const LIMIT_MAX: u64 = sereno_core::limits::LEASES_PER_NAMESPACE_MAX;
const PAGE_ROWS: usize = 1_000;

pub(crate) async fn run(client: &Client, args: LsArgs) -> Result<(), Failure> {
    let at = args.at;
    let mut list = ListLocks {
        namespace: at.namespace.clone(),
        prefix: args.prefix,
        owner: args.owner,
        ..ListLocks::default()
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut rows: Vec<LockRow> = Vec::new();
    let mut more = true;
    while more && rows.len() < limit {
        list.limit = Some((limit - rows.len()).min(PAGE_ROWS));
        let page = client.list_locks(&list).await?;
        rows.extend(page.locks);
        more = page.next_cursor.is_some();
        list.cursor = page.next_cursor;
    }
    let rows: Vec<_> = rows.into_iter().map(|row| at.locate(row)).collect();
    args.output.answer(&rows, |rows| text(rows, more))
}

fn text(rows: &[Located<LockRow>], more: bool) -> String {
    let cells = |Located { thing: row, .. }: &Located<LockRow>| {
        let holder = &row.holder;
        vec![
            row.resource.clone(),
            holder.owner.clone(),
            holder.fencing_token.to_string(),
            human(holder.held_for_ms),
            human(holder.expires_in_ms),
            row.waiters.to_string(),
        ]
    };
    let head = ["RESOURCE", "OWNER", "TOKEN", "HELD", "EXPIRES IN", "WAITERS"];
    let text = table(&head, &rows.iter().map(cells).collect::<Vec<_>>());
    if more { text + "\n(there are more: raise --limit)" } else { text }
}
