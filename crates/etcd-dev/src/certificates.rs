//! Certificates for an etcd that serves TLS, made by openssl.

use crate::{Error, Tls};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Files in a folder: the authority `ca` has signed for `server` and `client`, and another one, `other`, for a
/// `stranger`. Of each there is a `.pem` and a `.key`.
#[derive(Clone, Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes them in a folder that is there. Needs openssl (Debian package openssl).
    ///
    /// # Errors
    /// When openssl does not run, or a file cannot be written.
    pub fn make(folder: &Path) -> Result<Self, Error> {
        let extensions =
            "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n";
        let written = fs::write(folder.join("extensions"), extensions);
        written.map_err(|error| Error(format!("writing to {}: {error}", folder.display())))?;
        make(folder, "ca", &["server", "client"])?;
        make(folder, "other", &["stranger"])?;
        Ok(Self { folder: folder.into() })
    }

    /// One of the files, such as `client.pem`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What a cluster serves with them, and whether it lets in only clients with a certificate.
    pub fn tls(&self, asks_clients: bool) -> Tls {
        let client = asks_clients.then(|| (self.file("client.pem"), self.file("client.key")));
        let (ca, certificate) = (self.file("ca.pem"), self.file("server.pem"));
        Tls { ca, certificate, key: self.file("server.key"), client }
    }
}

/// An authority, and a certificate signed by it for each name.
fn make(folder: &Path, authority: &str, names: &[&str]) -> Result<(), Error> {
    const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(
        folder,
        &format!(
            "req -x509 {KEY} -keyout {authority}.key -out {authority}.pem -days 30 -subj /CN={authority}"
        ),
    )?;
    for name in names {
        let request = format!("req -new {KEY} -keyout {name}.key -out {name}.csr -subj /CN={name}");
        openssl(folder, &request)?;
        openssl(
            folder,
            &format!(
                "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem -days 30 -extfile extensions"
            ),
        )?;
    }
    Ok(())
}

fn openssl(folder: &Path, arguments: &str) -> Result<(), Error> {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let output = output
        .map_err(|error| Error(format!("cannot run openssl (Debian package openssl): {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error(format!("openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
