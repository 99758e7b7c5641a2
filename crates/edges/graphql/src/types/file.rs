//! Files of a world, where they come from and where they went.

use async_graphql::ComplexObject;
use wharf_domain::scope::WorldPath;
use wharf_vocab::WorldId;

use super::Direction;
use super::view::view;
use crate::scalars::{DateTime, Int64};

view! {
    /// One writing or reading of a file.
    #[graphql(complex)]
    Artifact of Artifact {
        /// The world.
        world: String,
        /// The file's path within the world; local files of a run are below `/@run/`.
        path: String,
        /// Its size in bytes.
        bytes: Int64,
        /// Its BLAKE3 hash, if it is known.
        b3: Option<String>,
        /// Its media type.
        media_type: String,
        /// The run that wrote or read it; null if it was uploaded.
        run_id: Option<String>,
        /// The name of the run's input or output.
        key: Option<String>,
        /// Whether it was written or read.
        direction: Direction,
        /// When; null in a run's own list.
        at: Option<DateTime>,
        /// When what was written was replaced or removed, if it was.
        gone_at: Option<DateTime>,
    }
}

#[ComplexObject]
impl Artifact {
    /// How records and requests name it.
    async fn uri(&self) -> String {
        let place = WorldId::new(&self.world).ok().zip(WorldPath::parse_any(&self.path).ok());
        place.map_or_else(String::new, |(world, path)| path.uri(&world))
    }
}

view! {
    /// Where a file comes from and where it went.
    Trace of Trace {
        /// The world.
        world: String,
        /// The file.
        path: String,
        /// Every writing of it, oldest first.
        written: Vec<Artifact>,
        /// Every reading of it by a run, oldest first.
        read: Vec<Artifact>,
        /// For each run that wrote it, the files that run read.
        made_from: Vec<TraceStep>,
        /// For each run that read it, the files that run wrote.
        went_into: Vec<TraceStep>,
        /// With a `depth` above 1, runs farther away, nearer ones first.
        further: Vec<TraceRun>,
        /// Whether there is more than is shown.
        cut: bool,
    }
}

view! {
    /// A run that read or wrote a file.
    TraceStep of TraceStep {
        /// The run.
        run_id: String,
        /// The files it read or wrote.
        files: Vec<Artifact>,
    }
}

view! {
    /// A run that files connect with the file over other runs.
    TraceRun of TraceRun {
        /// The run.
        run_id: String,
        /// How many runs away it is, from 2.
        depth: u32,
        /// Where it lies: `in` what the file was made from, `out` what it went into.
        side: Direction,
        /// The files it read; on the side `out` only those that lie on the way.
        read: Vec<Artifact>,
        /// The files it wrote; on the side `in` only those that lie on the way.
        wrote: Vec<Artifact>,
    }
}

view! {
    /// How much a world holds.
    Usage of Usage {
        /// The world.
        world: String,
        /// Its files, local ones of runs included.
        files: Int64,
        /// Their size in bytes.
        bytes: Int64,
        /// How many of the files are local to a run.
        local_files: Int64,
        /// Their size in bytes.
        local_bytes: Int64,
    }
}
