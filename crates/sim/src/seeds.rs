//! How many seeds are wanted, as the variable `SEEDS` says.

/// What the variable `SEEDS` asks for, or so many.
///
/// # Errors
/// What is wrong with it: a number that is not understood must not pass for seeds that held.
pub fn seeds_wanted(otherwise: u64) -> Result<u64, String> {
    match std::env::var("SEEDS") {
        Err(std::env::VarError::NotPresent) => Ok(otherwise),
        Err(error) => Err(format!("SEEDS: {error}")),
        Ok(text) => read(&text),
    }
}

fn read(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("SEEDS=0: at least one seed has to be run".into()),
        Ok(seeds) => Ok(seeds),
        Err(error) => {
            Err(format!("SEEDS={text}: {error}; a number of seeds is wanted, as in SEEDS=5000"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_wanted_and_nothing_else() {
        assert_eq!(read("5000"), Ok(5_000));
        for wrong in ["", "0", "many", "1e3", "-1", " 7"] {
            let message = read(wrong).unwrap_err();
            assert!(message.starts_with(&format!("SEEDS={wrong}:")), "{message}");
        }
    }
}
