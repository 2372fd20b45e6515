//! The egress policy of a scenario: a list of hosts.
//!
//! Invariant: an empty list allows nothing. Deliberately no name resolution.

use greenroom_boundary::Egress;
use greenroom_boundary::egress::{Destination, EgressDenied};

use crate::model::glob;

/// Allows these hosts, `HOST` or `HOST:PORT`, with `*` for any text.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowList(pub(super) Vec<String>);

impl Egress for AllowList {
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied> {
        let with_port = format!("{}:{}", destination.host, destination.port);
        if self.0.iter().any(|rule| glob(rule, &destination.host) || glob(rule, &with_port)) {
            return Ok(());
        }
        Err(EgressDenied {
            host: destination.host.clone(),
            port: destination.port,
            purpose: destination.purpose.clone(),
            reason: format!("it is not in the scenario's list; add {with_port} to `egress: {{ allow: […] }}` under `drivers`"),
        })
    }
}
