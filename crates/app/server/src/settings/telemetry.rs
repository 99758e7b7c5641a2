//! `[telemetry]`, and the variables of the environment by which all programs that export traces
//! are told where to.

use std::time::Duration;

use serde::Deserialize;
use wharf_domain::trace::Sampling;
use wharf_telemetry::{CollectorEndpoint, TelemetryOptions, UnfitEndpoint};
use wharf_vocab::Fault;

use super::invalid;

const SERVICE_DEFAULT: &str = "wharf";
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// Pairs that are taken from one variable.
const PAIRS_MAX: usize = 64;

/// The only form that is spoken.
const PROTOCOL: &str = "http/protobuf";

/// `[telemetry]` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetryTable {
    otlp: Option<String>,
    service_name: Option<String>,
    sample: Option<f64>,
}

impl TelemetryTable {
    /// What is set here and in the environment, where traces are to be exported at all.
    pub(super) fn settle(
        self,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TelemetryOptions>, Fault> {
        let is_off = var("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || var("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
        if is_off {
            return Ok(None);
        }
        let sampling = self.sampling(&var)?;
        let Some(mut endpoint) = self.endpoint(&var)? else { return Ok(None) };
        for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
            for (key, value) in pairs(var(name).as_deref()) {
                endpoint = endpoint.with_header(&key, &value).map_err(|unfit| of(name, unfit))?;
            }
        }
        let mut resource = pairs(var("OTEL_RESOURCE_ATTRIBUTES").as_deref());
        let attribute = resource.iter().position(|(key, _)| key == "service.name");
        let attribute = attribute.map(|at| resource.remove(at).1);
        let service_name = var("OTEL_SERVICE_NAME").or(attribute).or(self.service_name);
        Ok(Some(TelemetryOptions {
            endpoint,
            service_name: service_name.unwrap_or_else(|| SERVICE_DEFAULT.to_owned()),
            resource,
            sampling,
            timeout: timeout(&var)?,
        }))
    }

    fn endpoint(
        &self,
        var: &impl Fn(&str) -> Option<String>,
    ) -> Result<Option<CollectorEndpoint>, Fault> {
        let (own, all) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
        let named = match (var(own), var(all), &self.otlp) {
            (Some(text), _, _) => {
                CollectorEndpoint::of_traces(&text).map_err(|unfit| of(own, unfit))?
            }
            (None, Some(text), _) => {
                CollectorEndpoint::of_collector(&text).map_err(|unfit| of(all, unfit))?
            }
            (None, None, Some(text)) => {
                let named = "The key telemetry.otlp in wharf.toml";
                CollectorEndpoint::of_collector(text).map_err(|unfit| of(named, unfit))?
            }
            (None, None, None) => return Ok(None),
        };
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            match var(name) {
                Some(text) if text == PROTOCOL => break,
                Some(text) => {
                    return Err(invalid(format!(
                        "{name} is {text:?}, and the core speaks {PROTOCOL}; set it so, with the \
                         collector's address for that, or set OTEL_SDK_DISABLED=true."
                    )));
                }
                None => {}
            }
        }
        Ok(Some(named))
    }

    fn sampling(&self, var: &impl Fn(&str) -> Option<String>) -> Result<Sampling, Fault> {
        let wrong = |name: &str| invalid(format!("{name} must be a number from 0 to 1."));
        let argument = || match var("OTEL_TRACES_SAMPLER_ARG") {
            Some(text) => {
                text.parse::<f64>().map(Some).map_err(|_| wrong("OTEL_TRACES_SAMPLER_ARG"))
            }
            None => Ok(None),
        };
        let said = match var("OTEL_TRACES_SAMPLER").as_deref() {
            None => None,
            Some("always_on" | "parentbased_always_on") => Some(1.0),
            Some("always_off" | "parentbased_always_off") => Some(0.0),
            Some("traceidratio" | "parentbased_traceidratio") => Some(argument()?.unwrap_or(1.0)),
            Some(_) => {
                return Err(invalid(
                    "OTEL_TRACES_SAMPLER must be parentbased_always_on, parentbased_always_off or \
                     parentbased_traceidratio.",
                ));
            }
        };
        let name = match said {
            Some(_) => "OTEL_TRACES_SAMPLER_ARG",
            None => "The key telemetry.sample in wharf.toml",
        };
        let ratio = said.or(self.sample).unwrap_or(1.0);
        Sampling::of_ratio(ratio).ok_or_else(|| wrong(name))
    }
}

fn timeout(var: &impl Fn(&str) -> Option<String>) -> Result<Duration, Fault> {
    for name in ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"] {
        let Some(text) = var(name) else { continue };
        let ms = text.parse::<u64>().ok().filter(|ms| *ms > 0);
        let ms = ms.ok_or_else(|| invalid(format!("{name} must be a number of milliseconds.")))?;
        return Ok(Duration::from_millis(ms).min(TIMEOUT_MAX));
    }
    Ok(TIMEOUT_DEFAULT)
}

fn of(name: &str, UnfitEndpoint(why): UnfitEndpoint) -> Fault {
    invalid(format!("{name} {why}."))
}

/// Pairs as such variables have them: `key=value,key=value`, with values encoded by percents.
fn pairs(text: Option<&str>) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        percent_encoding::percent_decode_str(text.trim()).decode_utf8_lossy().into_owned()
    };
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((decoded(key), decoded(value)))
    };
    let parts = text.unwrap_or_default().split(',');
    parts.filter_map(pair).filter(|(key, _)| !key.is_empty()).take(PAIRS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(file: &str, vars: &[(&str, &str)]) -> Result<Option<TelemetryOptions>, Fault> {
        let file: TelemetryTable = toml::from_str(file).expect("a table");
        file.settle(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_wins_and_nothing_is_exported_unless_somebody_says_where() {
        assert_eq!(settle("", &[]).expect("fits"), None);
        let file = "otlp = \"http://127.0.0.1:4318\"\nservice_name = \"dock\"\nsample = 0.5";
        let set = settle(file, &[]).expect("fits").expect("set");
        assert_eq!(set.endpoint.shown(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!((set.service_name.as_str(), set.timeout), ("dock", TIMEOUT_DEFAULT));
        assert_eq!(Some(set.sampling), Sampling::of_ratio(0.5));
        let vars = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel.example/x"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret, x-team=a"),
            ("OTEL_SERVICE_NAME", "pier"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.name=other"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOL),
        ];
        let set = settle(file, &vars).expect("fits").expect("set");
        assert_eq!(set.endpoint.shown(), "https://otel.example/x/v1/traces");
        assert_eq!(set.service_name, "pier");
        assert_eq!(set.resource, [("deployment.environment".to_owned(), "test".to_owned())]);
        assert_eq!(Some(set.sampling), Sampling::of_ratio(0.1));
        assert_eq!(set.timeout, Duration::from_millis(2500));
        assert!(!format!("{set:?}").contains("s3cret"), "{set:?}");
        for (name, value) in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(settle(file, &[(name, value)]).expect("fits"), None);
        }
        let own = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:1/own")];
        let set = settle(file, &own).expect("fits").expect("set");
        assert_eq!(set.endpoint.shown(), "http://h:1/own");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let file = "otlp = \"http://127.0.0.1:4318\"";
        for (file, vars, said) in [
            (
                "otlp = \"localhost:4318\"",
                &[][..],
                "telemetry.otlp in wharf.toml must be an address",
            ),
            ("otlp = \"http://h\"\nsample = 2.0", &[], "telemetry.sample in wharf.toml must be"),
            (file, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "speaks http/protobuf"),
            (file, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "h:4317")], "_ENDPOINT must be an address"),
            (file, &[("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")], "number of milliseconds"),
            (file, &[("OTEL_TRACES_SAMPLER", "jaeger_remote")], "OTEL_TRACES_SAMPLER must be"),
            (file, &[("OTEL_EXPORTER_OTLP_HEADERS", "a b=c")], "must be pairs such as"),
        ] {
            let fault = settle(file, vars).expect_err(said);
            assert!(fault.message.contains(said), "{fault}");
        }
    }
}
