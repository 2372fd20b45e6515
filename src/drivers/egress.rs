//! The policy on outgoing connections.
//!
//! Invariant: an address that is not public (loopback, private, link-local, a cloud's metadata) needs a rule that names
//! it; no wildcard reaches it. Names are judged as configured: deliberately no name resolution, so a public name that
//! resolves to a private address is not caught here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use greenroom_boundary::Egress;
use greenroom_boundary::egress::{Destination, EgressDenied};

/// A list of hosts that may be contacted.
#[derive(Clone, Debug, Default)]
pub struct EgressPolicy {
    rules: Vec<EgressRule>,
}

/// One entry of the list: `HOST` or `HOST:PORT`. `HOST` is a name, an address (IPv6 in brackets if a port follows),
/// `*.NAME` for everything below a name, or `*` for every public host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressRule {
    host: HostRule,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostRule {
    AnyPublic,
    Below(String),
    Name(String),
    Address(IpAddr),
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is no egress rule: {reason}; write `api.example.com`, `*.example.com:443`, `127.0.0.1:8080` or `*`")]
pub struct EgressRuleError {
    /// What was written.
    pub rule: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl EgressRuleError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "EGRESS_RULE"
    }
}

impl EgressPolicy {
    /// A policy that allows what some rule allows.
    pub fn new(rules: Vec<EgressRule>) -> Self {
        Self { rules }
    }

    /// A policy from rules as text.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, EgressRuleError> {
        rules.into_iter().map(str::parse).collect::<Result<_, _>>().map(Self::new)
    }
}

impl Egress for EgressPolicy {
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied> {
        let host = Host::read(&destination.host);
        if self.rules.iter().any(|rule| rule.allows(&host, destination.port)) {
            return Ok(());
        }
        let kind = if host.is_public() { "no rule allows it" } else { "it is not a public address, and no rule names it" };
        Err(EgressDenied {
            host: destination.host.clone(),
            port: destination.port,
            purpose: destination.purpose.clone(),
            reason: format!("{kind}; add `{}` to the allowed hosts", host.as_rule(destination.port)),
        })
    }
}

impl FromStr for EgressRule {
    type Err = EgressRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |reason| EgressRuleError { rule: text.to_owned(), reason };
        let (host, port) = split_port(text.trim());
        let port =
            port.map(|port| port.parse::<u16>().map_err(|_| invalid("its port is no number up to 65535"))).transpose()?;
        if host.contains("://") || host.contains('/') {
            return Err(invalid("it is an address of a page, not of a host"));
        }
        let host = match host.strip_prefix("*.") {
            _ if host == "*" => HostRule::AnyPublic,
            Some(name) if is_name(name) => HostRule::Below(name.to_ascii_lowercase()),
            Some(_) => return Err(invalid("`*.` must be followed by a name")),
            None => match Host::read(host) {
                Host::Address(address) => HostRule::Address(address),
                Host::Name(name) if is_name(&name) => HostRule::Name(name),
                Host::Name(_) => return Err(invalid("its host is neither a name nor an address")),
            },
        };
        Ok(Self { host, port })
    }
}

impl EgressRule {
    fn allows(&self, host: &Host, port: u16) -> bool {
        let host_allowed = match (&self.host, host) {
            (HostRule::AnyPublic, host) => host.is_public(),
            (HostRule::Below(above), Host::Name(name)) => {
                host.is_public() && name.strip_suffix(above.as_str()).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
            }
            (HostRule::Name(wanted), Host::Name(name)) => wanted == name,
            (HostRule::Address(wanted), Host::Address(address)) => wanted == address,
            _ => false,
        };
        host_allowed && self.port.is_none_or(|wanted| wanted == port)
    }
}

/// A destination's host, read once.
#[derive(Debug)]
enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    fn read(host: &str) -> Self {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            // `::ffff:127.0.0.1` is 127.0.0.1 by another spelling.
            Ok(address) => Self::Address(address.to_canonical()),
            Err(_) => Self::Name(bare.trim_end_matches('.').to_ascii_lowercase()),
        }
    }

    fn is_public(&self) -> bool {
        match self {
            Self::Address(IpAddr::V4(address)) => is_public_v4(*address),
            Self::Address(IpAddr::V6(address)) => is_public_v6(*address),
            // A bare number or a hexadecimal form is an IPv4 address to many resolvers: `0x7f000001`, `127.1`.
            Self::Name(name) => {
                let last = name.rsplit('.').next().unwrap_or_default();
                let numeric = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
                let local = matches!(last, "localhost" | "local" | "internal") || !name.contains('.');
                !numeric && !local
            }
        }
    }

    fn as_rule(&self, port: u16) -> String {
        match self {
            Self::Name(name) => format!("{name}:{port}"),
            Self::Address(IpAddr::V4(address)) => format!("{address}:{port}"),
            Self::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let reserved = a == 0 || a >= 240 || (a == 192 && b == 0 && address.octets()[2] == 0) || (a == 198 && (b == 18 || b == 19));
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || shared
        || reserved)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Only 2000::/3 is given out; 64:ff9b::/96 (NAT64) and 2002::/16 (6to4) carry IPv4 addresses inside.
    let [first, second, ..] = address.segments();
    let documentation = first == 0x2001 && second == 0x0db8;
    (0x2000..0x4000).contains(&first) && first != 0x2002 && !documentation
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        match rest.strip_prefix(':') {
            None if !rest.is_empty() => return (text, None),
            port => return (host, port),
        }
    }
    match text.split_once(':') {
        // More than one colon without brackets: an IPv6 address without a port.
        Some((_, rest)) if rest.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

fn is_name(name: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    name.split('.').all(label)
}
