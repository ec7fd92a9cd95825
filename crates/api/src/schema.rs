//! Schemas of values that are plain strings here.

/// 1 to 256 bytes of `A-Z a-z 0-9 . _ : / @ + -`, no empty segment, none that is `.` or `..`.
#[derive(utoipa::ToSchema)]
#[schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Resource(String);
