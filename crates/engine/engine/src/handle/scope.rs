//! Looking up what a request's references stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use wharf_domain::run::Addresses;
use wharf_domain::scope::{
    Bindings, InputBinding, InputSource, Intent, Plan, ReadObject, Target, WorldPath, resolve,
};
use wharf_domain::{Artifact, Caller, Run};
use wharf_ports::{FileRecord, ObjectVersion, TraceQuery};
use wharf_vocab::limits::CONTINUES_DEPTH_MAX;
use wharf_vocab::{Code, Fault, Object, RunId, RunKey, Verb};

use super::RunCalls;
use super::in_use::Claim;
use super::request::NewRun;
use crate::catalog::CatalogTool;

/// Objects that are looked at side by side.
const LOOKS_AT_ONCE: usize = 16;
/// Records of one run about one of its local files that are looked at.
const RECORDS_MAX: usize = 64;

/// What a request means, looked up.
#[derive(Debug, Default)]
pub(super) struct ResolvedRequest {
    pub(super) inputs: Object,
    pub(super) outputs: Object,
    pub(super) bindings: Bindings,
    pub(super) addresses: Addresses,
}

impl<'a> RunCalls<'a> {
    /// What the keys of a request mean, without looking anything up.
    pub(super) fn plan(
        self,
        new: &NewRun,
        tool: &CatalogTool,
        key: &RunKey,
    ) -> Result<Plan, Fault> {
        // Names and values of another protocol mean nothing here, not even a suffix.
        let literal = tool.def.mcp.is_some().then(Object::new);
        let mut plan = resolve(&Intent {
            world: &new.world,
            run: &key.run,
            continues: new.continues.as_ref(),
            inputs: literal.as_ref().unwrap_or(&new.inputs),
            outputs: &new.outputs,
            is_literal: &|name| tool.def.is_literal(name),
        })?;
        if literal.is_some() {
            plan.inputs = new.inputs.clone();
        }
        for (name, address) in &plan.output_uris.0 {
            if !origin_of(address).is_some_and(|origin| self.allows(&origin)) {
                let key = key_of(&new.outputs, name);
                let message = format!(
                    "The output `{key}` goes to a place that this core's owner has not allowed."
                );
                return Err(Fault::new(Code::ScopeForbidden, message).with("key", key));
            }
        }
        check_lengths(new, &plan)?;
        let reads = plan.reads.values().any(|source| *source != InputSource::Uri);
        let writes = plan.writes.values().any(|target| *target != Target::Uri);
        if (reads || writes) && self.0.inner.objects.is_none() {
            let message = "This core has no artifact store, so runs cannot read or write files.";
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        Ok(plan)
    }

    fn allows(self, origin: &str) -> bool {
        let same = |known: &String| origin_of(known).is_some_and(|known| known == *origin);
        self.0.inner.origins.iter().any(same)
    }

    /// Looks up the files that a request reads. They stay where they are while the claim is held.
    pub(super) async fn look_up(
        self,
        caller: &Caller,
        new: &NewRun,
        key: &RunKey,
        plan: Plan,
    ) -> Result<(ResolvedRequest, Option<Claim<'a>>), Fault> {
        let Plan { mut inputs, outputs, reads, writes, input_uris, output_uris } = plan;
        let addresses = Addresses { inputs: input_uris, outputs: output_uris };
        let mut bindings = Bindings { reads: BTreeMap::new(), writes };
        let (mut objects, mut chain) = (BTreeMap::new(), BTreeMap::new());
        for (name, source) in reads {
            match source {
                InputSource::Object(path) => drop(objects.insert(name, path)),
                InputSource::Chain(path) => drop(chain.insert(name, path)),
                InputSource::Uri => drop(bindings.reads.insert(name, InputBinding::Uri)),
            }
        }
        if let Some(continues) = &new.continues {
            for (name, path) in self.along_chain(caller, new, continues, chain).await? {
                inputs.insert(name.clone(), path.uri(&new.world).into());
                objects.insert(name, path);
            }
        }
        if objects.is_empty() {
            return Ok((ResolvedRequest { inputs, outputs, bindings, addresses }, None));
        }
        self.check_owners(caller, new, key, &objects).await?;
        let places = objects.values().map(|path| (new.world.clone(), path.clone())).collect();
        let claim = self.0.inner.in_use.read(places).map_err(|(_, gone)| {
            let found = objects.iter().find(|(_, path)| **path == gone);
            missing(&key_of(&new.inputs, found.map_or("", |(name, _)| name)))
        })?;
        let looks = objects.into_iter().map(|(name, path)| self.look_at(new, name, path));
        let looks = futures::stream::iter(looks.collect::<Vec<_>>());
        let found: Vec<_> = looks.buffered(LOOKS_AT_ONCE).try_collect().await?;
        bindings.reads.extend(found);
        Ok((ResolvedRequest { inputs, outputs, bindings, addresses }, Some(claim)))
    }

    /// Finds for each local path the newest run that wrote it, along the chain of predecessors.
    async fn along_chain(
        self,
        caller: &Caller,
        new: &NewRun,
        continues: &RunId,
        mut wanted: BTreeMap<String, WorldPath>,
    ) -> Result<Vec<(String, WorldPath)>, Fault> {
        let key = RunKey { world: new.world.clone(), run: continues.clone() };
        let Some(mut run) = self.seen(caller, &key).await? else {
            let message = format!(
                "The run {continues} that this one continues is not in the world {}.",
                new.world
            );
            let code = self.code_of_stranger(caller, &key).await;
            return Err(Fault::new(code, message).with("key", "continues"));
        };
        let mut found = Vec::new();
        for _ in 0..CONTINUES_DEPTH_MAX {
            if wanted.is_empty() {
                break;
            }
            for (name, path) in std::mem::take(&mut wanted) {
                match path.local_to(&run.key.run) {
                    Some(local) if self.wrote(&run.key, &local).await? => found.push((name, local)),
                    _ => drop(wanted.insert(name, path)),
                }
            }
            let Some(before) = run.spec.continues.clone() else { break };
            // What was removed ends the chain.
            let key = RunKey { world: new.world.clone(), run: before };
            let Some(found) = self.seen(caller, &key).await? else { break };
            run = found;
        }
        match wanted.keys().next() {
            None => Ok(found),
            Some(name) => {
                let key = key_of(&new.inputs, name);
                let message = format!(
                    "The file of `{key}` was written by no run that {continues} is or continues."
                );
                Err(Fault::new(Code::ScopeNotFound, message).with("key", key))
            }
        }
    }

    /// A run as far as a caller may know of it: one of a tool that it may not use is as good as
    /// not there.
    async fn seen(self, caller: &Caller, key: &RunKey) -> Result<Option<Arc<Run>>, Fault> {
        match self.get(key).await {
            Ok(run) => Ok(Some(run).filter(|run| caller.rights.check_tool(&run.spec.tool).is_ok())),
            Err(fault) if fault.is(Code::RunNotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Whether the run that starts this one wrote a file or was given it, and so may hand it on.
    async fn hands_on(self, new: &NewRun, path: &WorldPath) -> Result<bool, Fault> {
        let Some(parent) = &new.parent else { return Ok(false) };
        if path.run() == Some(parent.run.as_str()) {
            return Ok(true);
        }
        let parent = self.get(parent).await?;
        let given = |bound: &InputBinding| matches!(bound, InputBinding::Object(read) if read.path == *path);
        Ok(parent.spec.bindings.reads.values().any(given))
    }

    /// Whether a run wrote one of its local files, and it is still there.
    async fn wrote(self, run: &RunKey, path: &WorldPath) -> Result<bool, Fault> {
        let query = TraceQuery {
            world: run.world.clone(),
            path: Some(path.clone()),
            run: Some(run.run.clone()),
            after: 0,
            limit: RECORDS_MAX,
        };
        let records = self.0.inner.store.trace(query).await?;
        Ok(records.iter().any(FileRecord::is_here))
    }

    /// Whether the runs whose local files are named are in this world.
    async fn check_owners(
        self,
        caller: &Caller,
        new: &NewRun,
        key: &RunKey,
        objects: &BTreeMap<String, WorldPath>,
    ) -> Result<(), Fault> {
        for (name, path) in objects {
            let Some(run) = path.run().filter(|run| *run != key.run.as_str()) else { continue };
            let Ok(run) = RunId::new(run) else { return Err(missing(&key_of(&new.inputs, name))) };
            let owner = RunKey { world: new.world.clone(), run };
            if self.seen(caller, &owner).await?.is_none() && !self.hands_on(new, path).await? {
                let key = key_of(&new.inputs, name);
                let message = format!(
                    "`{key}` names the run {}, which is not in the world {}.",
                    owner.run, owner.world
                );
                let code = self.code_of_stranger(caller, &owner).await;
                return Err(Fault::new(code, message).with("key", key));
            }
        }
        Ok(())
    }

    /// What is wrong with naming a run that is not in this world: it is in another one, or in
    /// none that the caller may know of.
    async fn code_of_stranger(self, caller: &Caller, named: &RunKey) -> Code {
        for world in self.0.inner.records.worlds.all() {
            let key = RunKey { world: world.id, run: named.run.clone() };
            let may_know = self.0.trust().authorise(caller, Verb::Read, &key.world).is_ok();
            if key.world != named.world
                && may_know
                && matches!(self.seen(caller, &key).await, Ok(Some(_)))
            {
                return Code::ScopeForbidden;
            }
        }
        Code::ScopeNotFound
    }

    /// What an input that is a file stands for; it must be there.
    async fn look_at(
        self,
        new: &NewRun,
        name: String,
        path: WorldPath,
    ) -> Result<(String, InputBinding), Fault> {
        if let Some(given) = new.handed_on.get(&name).filter(|given| given.path == path) {
            return Ok((name, InputBinding::Object(given.clone())));
        }
        let here = self.0.files().here_now(&new.world, &path).await;
        let here = here.map_err(|fault| fault.with("key", key_of(&new.inputs, &name)))?;
        let Some((file, info)) = here else { return Err(missing(&key_of(&new.inputs, &name))) };
        let Artifact { bytes, b3, media_type, .. } = file.artifact;
        let ObjectVersion { version, tag, .. } = ObjectVersion::of(String::new(), info);
        Ok((name, InputBinding::Object(ReadObject { path, bytes, b3, media_type, version, tag })))
    }
}

/// Whether there can be all these files in the request's world.
fn check_lengths(new: &NewRun, plan: &Plan) -> Result<(), Fault> {
    let reads = plan.reads.iter().filter_map(|(name, source)| match source {
        InputSource::Object(path) | InputSource::Chain(path) => Some((&new.inputs, name, path)),
        InputSource::Uri => None,
    });
    let writes = plan.writes.iter().filter_map(|(name, target)| match target {
        Target::Object { path } => Some((&new.outputs, name, path)),
        Target::Uri => None,
    });
    for (values, name, path) in reads.chain(writes) {
        path.fits(&new.world).map_err(|error| {
            let key = key_of(values, name);
            let message = format!("The path of `{key}` is not valid: {error}.");
            Fault::new(Code::ScopePathInvalid, message).with("key", key)
        })?;
    }
    Ok(())
}

/// A file that an input refers to is not there.
pub(super) fn missing(key: &str) -> Fault {
    let message = format!("The file that the input `{key}` refers to is not there.");
    Fault::new(Code::ScopeNotFound, message).with("key", key)
}

/// The key of a request that a name comes from.
pub(super) fn key_of(values: &Object, name: &str) -> String {
    let candidates = [format!("{name}.world"), format!("{name}.local")];
    candidates.into_iter().find(|key| values.contains_key(key)).unwrap_or_else(|| name.to_owned())
}

/// Scheme, host and port of an address over HTTP, always written the same way; `None` for any
/// other address, and for one whose host different programs may read differently.
fn origin_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let port = match scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
    if authority.is_empty() || !authority.bytes().all(plain) {
        return None;
    }
    let host = authority.strip_suffix(port).unwrap_or(&authority);
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t025_an_origin_is_read_one_way_or_not_at_all() {
        for (address, origin) in [
            ("https://A.example/x?y", Some("https://a.example")),
            ("https://a.example:443/x", Some("https://a.example")),
            ("http://a.example:443/x", Some("http://a.example:443")),
            ("http://[::1]:9000/x", Some("http://[::1]:9000")),
            ("https://a.example?x=https://b.example", Some("https://a.example")),
            ("https://b.example\\@a.example/x", None),
            ("https://b.example@a.example/x", None),
            ("https:///x", None),
            ("s3://bucket/key", None),
        ] {
            assert_eq!(origin_of(address).as_deref(), origin, "{address}");
        }
    }
}
