//! `sereno jobs ls`

use super::{InNamespace, Located};
use crate::{
    failure::Failure,
    output::{Output, table},
    values,
};
use clap::Args;
use sereno_client::{Client, ListJobs, api::JobRow};

/// Which jobs to list.
#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    at: InNamespace,
    /// Only names that begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// So many at most: 1 to 1000000.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = values::count(1_000_000))]
    limit: u64,
    #[command(flatten)]
    output: Output,
}

const PAGE_ROWS: usize = 1_000;

pub(crate) async fn run(client: &Client, args: LsArgs) -> Result<(), Failure> {
    let at = args.at;
    let mut list =
        ListJobs { namespace: at.namespace.clone(), prefix: args.prefix, ..ListJobs::default() };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut rows: Vec<JobRow> = Vec::new();
    let mut more = true;
    while more && rows.len() < limit {
        list.limit = Some((limit - rows.len()).min(PAGE_ROWS));
        let page = client.list_jobs(&list).await?;
        rows.extend(page.jobs);
        more = page.next_cursor.is_some();
        list.cursor = page.next_cursor;
    }
    let rows: Vec<_> = rows.into_iter().map(|row| at.locate(row)).collect();
    args.output.answer(&rows, |rows| text(rows, more))
}

fn text(rows: &[Located<JobRow>], more: bool) -> String {
    let cells = |Located { job, .. }: &Located<JobRow>| {
        let last = job.last.as_ref();
        vec![
            job.job.clone(),
            job.schedule.clone(),
            job.zone.clone(),
            if job.paused { "paused".into() } else { String::new() },
            last.map_or(String::new(), |run| run.slot.clone()),
            last.map_or(String::new(), |run| run.state.to_string()),
        ]
    };
    let head = ["JOB", "SCHEDULE", "ZONE", "PAUSED", "LAST SLOT", "STATE"];
    let text = table(&head, &rows.iter().map(cells).collect::<Vec<_>>());
    if more { text + "\n(there are more: raise --limit)" } else { text }
}
