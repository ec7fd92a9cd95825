//! Notes for people on a request.

use serde::{Deserialize, Deserializer, Serialize, de};
use std::{collections::BTreeMap, fmt};

/// Key-value notes. A JSON object whose keys are distinct: the same key twice is refused, not overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Labels(pub BTreeMap<String, String>);

impl Labels {
    /// No notes at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if let Some(twice) = labels.insert(key.clone(), value) {
                        return Err(de::Error::custom(format!(
                            "label {key:?} twice ({twice:?} first)"
                        )));
                    }
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Labels {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, Type};
        let value = ObjectBuilder::new().schema_type(Type::String).max_length(Some(256));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(value))
            .max_properties(Some(16))
            .description(Some("Notes for people: at most 16 keys of 1 to 64 bytes."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Labels {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_twice_is_refused() {
        let error = serde_json::from_str::<Labels>(r#"{"a":"1","a":"2"}"#).unwrap_err().to_string();
        assert!(error.contains("label \"a\" twice"), "{error}");
        let labels: Labels = serde_json::from_str(r#"{"b":"1","a":"2"}"#).unwrap();
        assert_eq!(labels, [("a", "2"), ("b", "1")].into_iter().collect());
    }
}
