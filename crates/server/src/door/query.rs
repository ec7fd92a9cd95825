//! Query parameters: decoded as web forms are (`+` is a blank, `%2B` a plus), each at most once, unknown ones
//! refused.

use super::problem::Refused;
use percent_encoding::percent_decode_str;
use sereno_core::limits;
use sereno_node::handle::Consistency;

/// The parameters of one request.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Takes only `allowed` ones.
    pub(super) fn parse(query: Option<&str>, allowed: &[&str]) -> Result<Self, Refused> {
        let mut params: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| Refused::invalid("query", "is not UTF-8"))?;
            if !allowed.contains(&name.as_str()) {
                let rule = format!("is not known here; known are {}", allowed.join(", "));
                return Err(Refused::invalid(&name, rule));
            }
            if params.iter().any(|(other, _)| *other == name) {
                return Err(Refused::invalid(&name, "is given twice"));
            }
            let value = decode(value).ok_or_else(|| Refused::invalid(&name, "is not UTF-8"))?;
            params.push((name, value));
        }
        Ok(Self(params))
    }

    /// The value of a parameter that was given.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A whole number within bounds.
    pub(super) fn number(
        &self,
        name: &str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, Refused> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && (min..=max).contains(&number) => Ok(number),
            _ => Err(Refused::invalid(
                name,
                format!("must be a whole number from {min} to {max}, is {text:?}"),
            )),
        }
    }

    /// Rows of a page.
    pub(super) fn limit(&self) -> Result<usize, Refused> {
        let (default, max) = (limits::PAGE_ROWS_DEFAULT as u64, limits::PAGE_ROWS_MAX as u64);
        Ok(self.number("limit", default, 1, max)? as usize)
    }

    pub(super) fn consistency(&self) -> Result<Consistency, Refused> {
        match self.get("consistency") {
            None | Some("consistent") => Ok(Consistency::Consistent),
            Some("stale") => Ok(Consistency::Stale),
            Some(other) => {
                let rule = format!("must be consistent or stale, is {other:?}");
                Err(Refused::invalid("consistency", rule))
            }
        }
    }

    /// The beginning of resource names.
    pub(super) fn prefix(&self) -> Result<String, Refused> {
        let prefix = self.get("prefix").unwrap_or("");
        if prefix.len() > limits::RESOURCE_BYTES_MAX {
            return Err(Refused::invalid(
                "prefix",
                format!("has at most {} bytes", limits::RESOURCE_BYTES_MAX),
            ));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._:/@+-".contains(c);
        match prefix.chars().find(|&c| !allowed(c)) {
            Some(wrong) => {
                Err(Refused::invalid("prefix", format!("has {wrong:?}, which no resource has")))
            }
            None => Ok(prefix.to_owned()),
        }
    }
}

fn decode(text: &str) -> Option<String> {
    let blanks = text.replace('+', " ");
    percent_decode_str(&blanks).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(result: Result<impl Sized, Refused>) -> Option<String> {
        result.err().and_then(|refused| refused.0.field)
    }

    #[test]
    fn decoded_once_and_strictly() {
        let params = Params::parse(
            Some("prefix=a%2Bb%2F&owner=worker+7&limit=5"),
            &["prefix", "owner", "limit"],
        );
        let params = params.ok().unwrap();
        assert_eq!(params.prefix().ok().as_deref(), Some("a+b/"));
        assert_eq!(params.get("owner"), Some("worker 7"));
        assert_eq!(params.limit().ok(), Some(5));
        assert_eq!(field(Params::parse(Some("a=1"), &["b"])).as_deref(), Some("a"));
        assert_eq!(field(Params::parse(Some("a=1&a=2"), &["a"])).as_deref(), Some("a"));
        assert_eq!(field(Params::parse(Some("a=%ff"), &["a"])).as_deref(), Some("a"));
    }

    #[test]
    fn numbers_have_bounds_and_no_signs() {
        for wrong in ["", "0", "1001", "+5", "-1", "5.0", "abc", "99999999999999999999"] {
            let query = format!("limit={}", wrong.replace('+', "%2B"));
            let params = Params::parse(Some(&query), &["limit"]).ok().unwrap();
            assert_eq!(field(params.limit()).as_deref(), Some("limit"), "{wrong}");
        }
    }
}
