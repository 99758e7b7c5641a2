//! The runtime of Python handlers, as it is unpacked: the sources of the Python package.

/// Puts each file's text beside its path.
macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../../../sdks/python/src/", $path)))),*]
    };
}

/// Every file of the package, by its path below the package's source folder.
pub const SOURCES: &[(&str, &str)] = sources![
    "libs/runtime_common/hydration.py",
    "wharf_sdk/__init__.py",
    "wharf_sdk/_host.py",
    "wharf_sdk/_http.py",
    "wharf_sdk/_link.py",
    "wharf_sdk/_load.py",
    "wharf_sdk/_pydantic.py",
    "wharf_sdk/_trace.py",
    "wharf_sdk/_worker/__init__.py",
    "wharf_sdk/_worker/answer.py",
    "wharf_sdk/_worker/channel.py",
    "wharf_sdk/_worker/hydration.py",
    "wharf_sdk/_worker/keeper.py",
    "wharf_sdk/_worker/kernel.py",
    "wharf_sdk/_worker/parent.py",
    "wharf_sdk/_worker/run.py",
    "wharf_sdk/_worker/values.py",
    "wharf_sdk/agent.py",
    "wharf_sdk/async_client.py",
    "wharf_sdk/calling.py",
    "wharf_sdk/client.py",
    "wharf_sdk/constraints.py",
    "wharf_sdk/context.py",
    "wharf_sdk/cost.py",
    "wharf_sdk/describe.py",
    "wharf_sdk/docstring.py",
    "wharf_sdk/encoding.py",
    "wharf_sdk/errors.py",
    "wharf_sdk/events.py",
    "wharf_sdk/fault.py",
    "wharf_sdk/files.py",
    "wharf_sdk/forms.py",
    "wharf_sdk/function.py",
    "wharf_sdk/handler.py",
    "wharf_sdk/manifest.py",
    "wharf_sdk/models.py",
    "wharf_sdk/operative.py",
    "wharf_sdk/principal.py",
    "wharf_sdk/records.py",
    "wharf_sdk/request.py",
    "wharf_sdk/schema.py",
    "wharf_sdk/steps.py",
    "wharf_sdk/trial.py",
    "wharf_sdk/vendor.py",
    "wharf_sdk/wharf_agent.py",
    "wharf_sdk/worlds.py",
];

#[cfg(test)]
mod tests {
    use super::super::super::tests::assert_brought_along;
    use super::*;

    #[test]
    fn every_source_of_the_package_is_embedded() {
        assert_brought_along(SOURCES, "python", "py");
    }
}
