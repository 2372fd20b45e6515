//! What any egress policy must do.
//!
//! Invariant: the suite says how a refusal looks, not what is refused: that is each driver's own. Deliberately no
//! connection is made.

use bytes::Bytes;
use futures::FutureExt;

use crate::Egress;
use crate::egress::{Destination, HttpRequest};

/// Runs the whole suite; the policy must refuse `refused`.
pub fn all(egress: &dyn Egress, refused: &Destination) {
    a_refusal_says_what_was_refused_and_why(egress, refused);
    the_answer_does_not_change(egress, refused);
    a_refused_request_is_not_made(egress, refused);
}

/// A refusal names the destination, who asked, and the rule.
pub fn a_refusal_says_what_was_refused_and_why(egress: &dyn Egress, refused: &Destination) {
    let denied = egress.check(refused).expect_err("a refusal");
    assert_eq!((&denied.host, denied.port, &denied.purpose), (&refused.host, refused.port, &refused.purpose));
    assert!(!denied.reason.is_empty());
    assert_eq!(denied.code(), "EGRESS_DENIED");
    assert!(denied.to_string().contains(&refused.host) && denied.to_string().contains(&refused.purpose));
}

/// The same question gets the same answer.
pub fn the_answer_does_not_change(egress: &dyn Egress, destination: &Destination) {
    assert_eq!(egress.check(destination), egress.check(destination));
}

/// Where a policy refuses, no request is made.
pub fn a_refused_request_is_not_made(egress: &dyn Egress, refused: &Destination) {
    let request = HttpRequest {
        method: "GET".to_owned(),
        url: format!("http://{}:{}/", refused.host, refused.port),
        headers: Vec::new(),
        body: Bytes::new(),
        destination: refused.clone(),
        body_limit_bytes: 1,
    };
    // Refused at once: there is nothing to wait for.
    let answer = egress.fetch(request).now_or_never().expect("an answer at once");
    assert_eq!(answer.map_err(|error| error.code()), Err("EGRESS_DENIED"));
}
