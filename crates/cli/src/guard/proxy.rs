//! `sereno guard-proxy`: in front of an HTTP service that cannot check tokens.

use super::report::Reports;
use crate::{exit, failure::Failure, output::write, values};
use clap::Args;
use sereno_guard::proxy::{Config, MemoryError, Proxy, ProxyError, Unfenced};
use std::{net::SocketAddr, path::PathBuf, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// Bytes of a body, where nobody says otherwise: 64 MiB.
const BODY_MAX: &str = "67108864";
const BODY_MAX_LIMIT: u64 = 1 << 40;
const UPSTREAM_MAX_LIMIT: Duration = Duration::from_secs(3_600);

/// Stand in front of an HTTP service, and refuse the writes of earlier owners.
///
/// A request carries `Sereno-Fence-Key` and `Sereno-Token`, from the grant. An older token than was forwarded before
/// gets 412; a newer one waits until the older writes in flight have finished, and after it no older one is ever
/// forwarded. Finished is a write that the upstream has answered to the end, or for which --upstream-max has passed
/// since it was sent; after a crash of the proxy, since it was started again. Nobody may reach the upstream around it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProxyArgs {
    #[command(flatten)]
    reports: Reports,

    /// Where it listens. Port 0 takes a free one; the first line on standard output names it.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7482")]
    listen: SocketAddr,

    /// The service behind it: http://HOST[:PORT][/PATH].
    #[arg(long, value_name = "URL")]
    upstream: String,

    /// The folder of its memory: one process's alone.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// The longest that the upstream works on a request after it was sent. A write without an answer counts as finished
    /// then; the client gets 504.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = upstream_max)]
    upstream_max: Duration,

    /// The longest body of a request.
    #[arg(long, value_name = "BYTES", default_value = BODY_MAX, value_parser = values::number(0, BODY_MAX_LIMIT))]
    body_max: u64,

    /// Refuse every request without a token, also GET, HEAD and OPTIONS.
    #[arg(long, conflicts_with = "allow_unfenced")]
    require: bool,

    /// Pass requests without a token whatever their method, unchecked.
    #[arg(long)]
    allow_unfenced: bool,
}

fn upstream_max(text: &str) -> Result<Duration, String> {
    let max = values::duration(text)?;
    match max {
        max if max < Duration::from_millis(100) => Err("must be at least 100ms".into()),
        max if max > UPSTREAM_MAX_LIMIT => Err("must be at most 1h".into()),
        max => Ok(max),
    }
}

pub(crate) fn run(args: ProxyArgs) -> Result<u8, Failure> {
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr);
    // Somebody may have started it already.
    let _ = lines.with_max_level(tracing_subscriber::filter::LevelFilter::INFO).try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("starting the runtime", &error))?;
    runtime.block_on(serve(args))
}

async fn serve(args: ProxyArgs) -> Result<u8, Failure> {
    let listening = |error| Failure::io("listening for signals", &error);
    let mut terminate = signal(SignalKind::terminate()).map_err(listening)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(listening)?;
    let config = Config {
        listen: args.listen,
        reporter: args.reports.reporter(&format!("proxy {}", args.upstream))?,
        upstream: args.upstream,
        data: args.data,
        upstream_max: args.upstream_max,
        body_max: args.body_max,
        unfenced: match (args.require, args.allow_unfenced) {
            (true, _) => Unfenced::Nothing,
            (false, true) => Unfenced::Everything,
            (false, false) => Unfenced::Safe,
        },
    };
    let proxy = Proxy::start(config).await.map_err(failure)?;
    let address = proxy.address().map_err(|error| Failure::io("reading the address", &error))?;
    write(&format!("listening at http://{address}"))?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    proxy.run(stop).await.map(|()| 0).map_err(failure)
}

fn failure(error: ProxyError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        ProxyError::Upstream(..) => failure.exit(exit::USAGE),
        ProxyError::Memory(MemoryError::InUse(_)) => failure.hint(
            "Give each proxy a folder of its own, and let no two stand in front of one service.",
        ),
        ProxyError::MemoryLost(_) => {
            failure.hint("Nothing more was forwarded. Look at the disk, and start it again.")
        }
        _ => failure,
    }
}
