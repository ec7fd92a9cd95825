//! Objects, and nothing that a derived `Deserialize` takes for one: it would read an array's elements as the fields
//! in order, so that a caller's mistake passed unnoticed.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{fmt, marker::PhantomData};

/// A `T` that was written as a JSON object.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OnlyMap(PhantomData)).map(Self)
    }
}

struct OnlyMap<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// For an optional field (`#[serde(deserialize_with = "object::optional")]`), `null` meaning that it is absent.
pub(crate) fn optional<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|Object(value)| value))
}

/// For a list of them.
pub(crate) fn each<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Object<T>>::deserialize(from)?.into_iter().map(|Object(value)| value).collect())
}

/// For an optional list of them, `null` meaning that it is absent.
pub(crate) fn optional_each<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list = Option::<Vec<Object<T>>>::deserialize(from)?;
    Ok(list.map(|list| list.into_iter().map(|Object(value)| value).collect()))
}
