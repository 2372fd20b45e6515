//! What an expectation says about a trace.
//!
//! Invariant: an expectation that could not have failed is [`Judgement::Vacuous`], never a pass. Deliberately no places in
//! files: the runner knows where the scenario asked.

/// The word of one expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It held.
    Pass,
    /// It did not hold.
    Fail(Finding),
    /// It could not have failed: why.
    Vacuous(String),
}

/// What was found instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// For the person: found against expected.
    pub message: String,
    /// Position in the trace of the first divergent event.
    pub divergent: Option<usize>,
}

impl Judgement {
    /// A failure with no event to show.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::Fail(Finding { message: message.into(), divergent: None })
    }

    /// A failure that shows at this event.
    pub fn fail_at(message: impl Into<String>, divergent: usize) -> Self {
        Self::Fail(Finding { message: message.into(), divergent: Some(divergent) })
    }

    /// Pass, or a failure with this message.
    pub fn check(holds: bool, message: impl FnOnce() -> String) -> Self {
        if holds { Self::Pass } else { Self::fail(message()) }
    }
}
