//! Files of a world, where they come from and where they went.

use async_graphql::{ComplexObject, SimpleObject};
use wharf_domain::scope::WorldPath;
use wharf_vocab::WorldId;

use super::page::PageInfo;
use super::view::view;
use super::{Direction, Edge};
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

/// A page of files, and of folders where they are asked for.
#[derive(Debug, SimpleObject)]
#[graphql(name = "ArtifactConnection")]
pub(crate) struct Artifacts {
    /// The items, each with its cursor.
    pub(crate) edges: Vec<Edge<Artifact>>,
    /// The folders; only with `delimiter`.
    pub(crate) folders: Option<Vec<Folder>>,
    /// Whether there is more, and where it begins.
    pub(crate) page_info: PageInfo,
}

view! {
    /// A folder: what the paths of files have in common up to a slash.
    Folder of Folder {
        /// Its path, which ends with a slash.
        path: String,
        /// How many files it holds, those in folders within included, as far as was counted.
        files: Int64,
        /// How many bytes the files have that were counted.
        bytes: Int64,
        /// Whether counting ended early, so that there may be more.
        more: bool,
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
