//! Traces that go through several programs, as W3C Trace Context writes them: which one a run
//! belongs to, and the ids of its spans.
//!
//! Ids follow from what is on record of a run. So nothing has to be kept while it goes on, and a
//! core that was started again says the same ones: a span is told once, when its run is over.

use wharf_vocab::{Digest, RunKey, Timestamp};

use crate::RunSpec;

/// How many hexadecimal digits the id of a trace has.
const TRACE_DIGITS: usize = 32;
/// How many hexadecimal digits the id of a span has.
const SPAN_DIGITS: usize = 16;
/// The longest `traceparent` that is looked at; later versions may say more than this one.
const TRACEPARENT_BYTES_MAX: usize = 255;
/// The longest `tracestate` that is passed on, which is what everybody has to pass on at least.
const TRACESTATE_BYTES_MAX: usize = 512;
/// The bit of the flags that says that a trace is recorded.
const SAMPLED: u8 = 1;

/// A place in a trace: whoever works below it names it as the parent of its own spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, in hexadecimal digits.
    pub trace_id: String,
    /// The span, in hexadecimal digits.
    pub span_id: String,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`: version, trace, span and flags, in lower-case hexadecimal digits,
    /// with a trace and a span that are not all zeros. Later versions may say more after the flags.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > TRACEPARENT_BYTES_MAX {
            return None;
        }
        let mut parts = text.splitn(5, '-');
        let mut hex = |digits: usize| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            parts.next().filter(|part| part.len() == digits && part.bytes().all(is_digit))
        };
        let version = hex(2)?;
        let (trace_id, span_id, flags) = (hex(TRACE_DIGITS)?, hex(SPAN_DIGITS)?, hex(2)?);
        let more = parts.next().is_some();
        let is_named = |id: &str| id.bytes().any(|byte| byte != b'0');
        let is_known = version != "ff" && (!more || version != "00");
        let flags = u8::from_str_radix(flags, 16).ok()?;
        (is_known && is_named(trace_id) && is_named(span_id)).then(|| Self {
            trace_id: trace_id.to_owned(),
            span_id: span_id.to_owned(),
            sampled: flags & SAMPLED != 0,
        })
    }

    /// The same as a `traceparent`.
    pub fn traceparent(&self) -> String {
        let Self { trace_id, span_id, sampled } = self;
        format!("00-{trace_id}-{span_id}-{:02x}", u8::from(*sampled))
    }
}

/// What goes along with a call, so that whoever works on it can join its trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceHeaders {
    /// The place in the trace.
    pub traceparent: Option<String>,
    /// What tracing systems on the way add for each other.
    pub tracestate: Option<String>,
}

impl TraceHeaders {
    /// What a peer sent, without what cannot be used: an unreadable `traceparent` counts as absent,
    /// and without one a `tracestate` means nothing.
    #[must_use]
    pub fn checked(self) -> Self {
        let Self { traceparent, tracestate } = self;
        let Some(traceparent) = traceparent.filter(|text| TraceContext::parse(text).is_some())
        else {
            return Self::default();
        };
        let is_printable = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let fits =
            |text: &String| (1..=TRACESTATE_BYTES_MAX).contains(&text.len()) && is_printable(text);
        Self { traceparent: Some(traceparent), tracestate: tracestate.filter(fits) }
    }

    /// Itself below a run that is part of a trace: without an own place it has the place that runs
    /// below that one have, and what goes along with that trace goes along with it.
    #[must_use]
    pub fn below(self, above: Self) -> Self {
        let trace = |it: &Self| it.traceparent.as_deref().and_then(TraceContext::parse);
        match (trace(&self), trace(&above)) {
            (None, _) => above,
            (Some(own), Some(of)) if own.trace_id == of.trace_id && self.tracestate.is_none() => {
                Self { tracestate: above.tracestate, ..self }
            }
            _ => self,
        }
    }
}

/// Which traces are recorded that begin here. Whoever began one elsewhere has decided about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling(u64);

impl Sampling {
    /// How many different values the random part of a trace's id has.
    const VALUES: u64 = 1 << 56;

    /// So large a part of all traces; `None` if it is not from 0 to 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a part of 2^56 that was checked to lie between none and all of them"
    )]
    pub fn of_ratio(ratio: f64) -> Option<Self> {
        let threshold = (ratio * Self::VALUES as f64).round();
        (0.0..=1.0).contains(&ratio).then_some(Self(threshold as u64))
    }

    /// Whether a trace is recorded. It follows from its id, so that every program that is asked
    /// the same way says the same.
    pub fn takes(self, trace_id: &str) -> bool {
        let random = trace_id.get(TRACE_DIGITS - 14..).unwrap_or_default();
        u64::from_str_radix(random, 16).is_ok_and(|value| value < self.0)
    }
}

/// The spans of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTrace {
    /// The trace.
    pub trace_id: String,
    /// The span that the run's own lies below, unless the trace begins with it.
    pub parent: Option<String>,
    /// Whether the trace is recorded.
    pub sampled: bool,
    tracestate: Option<String>,
    run: Digest,
}

impl RunTrace {
    /// The spans of a run that was accepted at this moment. A run that was removed and another one
    /// that was made under its id later do not share them.
    pub fn of(key: &RunKey, accepted: Timestamp, spec: &RunSpec, sampling: Sampling) -> Self {
        let run = Digest::of(&[
            b"wharf.trace.1",
            key.world.as_str().as_bytes(),
            key.run.as_str().as_bytes(),
            &accepted.0.to_be_bytes(),
        ]);
        match spec.traceparent.as_deref().and_then(TraceContext::parse) {
            Some(TraceContext { trace_id, span_id, sampled }) => {
                let tracestate = spec.tracestate.clone();
                Self { trace_id, parent: Some(span_id), sampled, tracestate, run }
            }
            None => {
                let trace_id = run.as_str()[..TRACE_DIGITS].to_owned();
                let sampled = sampling.takes(&trace_id);
                Self { trace_id, parent: None, sampled, tracestate: None, run }
            }
        }
    }

    /// The span of the run itself.
    pub fn run_span(&self) -> String {
        self.span("run", 0)
    }

    /// The span of an attempt.
    pub fn attempt_span(&self, attempt: u32) -> String {
        self.span("attempt", attempt)
    }

    /// The span of one of the times it waited, counted from 0.
    pub fn wait_span(&self, wait: u32) -> String {
        self.span("wait", wait)
    }

    /// What goes along with an attempt; with attempt 0, what is said in the name of the run.
    pub fn headers(&self, attempt: u32) -> TraceHeaders {
        let span_id = if attempt == 0 { self.run_span() } else { self.attempt_span(attempt) };
        let (trace_id, sampled) = (self.trace_id.clone(), self.sampled);
        TraceHeaders {
            traceparent: Some(TraceContext { trace_id, span_id, sampled }.traceparent()),
            tracestate: self.tracestate.clone(),
        }
    }

    fn span(&self, kind: &str, number: u32) -> String {
        let run = self.run.as_str().as_bytes();
        let digest = Digest::of(&[run, kind.as_bytes(), &number.to_be_bytes()]);
        digest.as_str()[..SPAN_DIGITS].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn r170_a_traceparent_is_told_from_other_text() {
        let read = TraceContext::parse(GOOD).expect("one");
        assert_eq!(read.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((read.span_id.as_str(), read.sampled), ("00f067aa0ba902b7", true));
        assert_eq!(read.traceparent(), GOOD);
        let later = TraceContext::parse(&format!("01{}-more", &GOOD[2..]));
        assert_eq!(later.expect("a later version").traceparent(), GOOD);
        let unsampled = GOOD.replace("-01", "-02");
        assert!(TraceContext::parse(&unsampled).is_some_and(|read| !read.sampled));
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &format!("{GOOD}-more"),
            &format!("ff{}", &GOOD[2..]),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD[..GOOD.len() - 1],
            &format!("01{}-{}", &GOOD[2..], "x".repeat(255)),
        ] {
            assert!(TraceContext::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_tracestate_goes_along_when_it_fits_and_belongs_to_a_trace() {
        let checked = |parent: &str, state: &str| {
            let sent = TraceHeaders {
                traceparent: Some(parent.to_owned()),
                tracestate: Some(state.to_owned()),
            };
            sent.checked().tracestate
        };
        assert_eq!(checked(GOOD, "vendor=a,other=b").as_deref(), Some("vendor=a,other=b"));
        assert!(checked(GOOD, &"a".repeat(512)).is_some());
        assert_eq!(checked(GOOD, &"a".repeat(513)), None);
        assert_eq!(checked(GOOD, ""), None);
        assert_eq!(checked(GOOD, "a=\u{e9}"), None);
        assert_eq!(checked("no trace", "vendor=a"), None);
    }

    #[test]
    fn what_goes_along_with_a_trace_goes_along_below() {
        let headers = |parent: &str, state: Option<&str>| TraceHeaders {
            traceparent: Some(parent.to_owned()),
            tracestate: state.map(str::to_owned),
        };
        let above = headers(GOOD, Some("vendor=a"));
        assert_eq!(TraceHeaders::default().below(above.clone()), above);
        let further = GOOD.replace("00f067aa0ba902b7", "1111111111111111");
        let below = headers(&further, None).below(above.clone());
        assert_eq!(below, headers(&further, Some("vendor=a")));
        let own = headers(&further, Some("vendor=b"));
        assert_eq!(own.clone().below(above.clone()), own);
        let other = headers(&GOOD.replace("4bf9", "5bf9"), None);
        assert_eq!(other.clone().below(above), other, "another trace");
    }

    #[test]
    fn a_ratio_takes_about_so_many_traces_and_always_the_same_ones() {
        let ids: Vec<String> = (0..4_000_u32)
            .map(|number| Digest::of(&[&number.to_be_bytes()]).as_str()[..32].to_owned())
            .collect();
        let taken = |ratio: f64| {
            let sampling = Sampling::of_ratio(ratio).expect("a ratio");
            ids.iter().filter(|id| sampling.takes(id)).count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 4_000));
        assert!((800..1_200).contains(&taken(0.25)), "{}", taken(0.25));
        let (few, many) = (Sampling::of_ratio(0.1).expect("one"), Sampling::of_ratio(0.4));
        let many = many.expect("one");
        assert!(ids.iter().all(|id| !few.takes(id) || many.takes(id)));
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Sampling::of_ratio(wrong).is_none(), "{wrong}");
        }
    }
}
