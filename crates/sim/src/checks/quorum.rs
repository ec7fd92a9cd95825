//! S11: without a quorum nothing lands; and (S5) nothing is answered that has not landed.

pub(crate) fn lands(is_out: bool) {
    assert!(!is_out, "S11: nothing lands without a quorum");
}
