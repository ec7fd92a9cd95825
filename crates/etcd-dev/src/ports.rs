//! Free ports.

use crate::Error;
use std::net::{Ipv4Addr, TcpListener};

/// So many ports of the loopback address that nobody listens at just now.
pub(crate) fn free(count: usize) -> Result<Vec<u16>, Error> {
    let failed = |error: std::io::Error| Error(format!("looking for free ports: {error}"));
    let listeners = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    listeners.iter().map(|it| it.local_addr().map(|it| it.port()).map_err(failed)).collect()
}
