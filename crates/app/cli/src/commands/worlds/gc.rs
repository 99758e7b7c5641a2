//! `wharf worlds gc`.

use wharf_wire::rest_v1::Collected;

use crate::commands::{Context, Exit, Result, providers};
use crate::{amount, plain};

/// What `wharf worlds gc` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds gc lab --dry-run
  wharf worlds gc lab

Removes files that were not used within the world's retention (wharf worlds set W --retention 30d),
and leftovers of runs and uploads, except what open runs use. The core does the same from time to
time.")]
pub(crate) struct WorldsGcArgs {
    /// The world's id
    world: String,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// Clears away, or says what would be.
pub(super) async fn run(args: &WorldsGcArgs, context: &Context) -> Result<Exit> {
    let call = context.client()?.worlds().collect(&args.world, args.dry_run);
    let doing = format!("looking through {}", plain::line(&args.world));
    let told = |collected| format!("{}\n", sentence(&collected));
    providers::steer(context.output, &doing, call, told).await
}

fn sentence(collected: &Collected) -> String {
    let verb = if collected.dry { "would remove" } else { "removed" };
    let in_use = match collected.in_use {
        0 => String::new(),
        1 => "; 1 old file is in use and stays".to_owned(),
        many => format!("; {many} old files are in use and stay"),
    };
    let young = match collected.unrecorded {
        0 => String::new(),
        1 => "; 1 object is on no record and goes when it is a day old".to_owned(),
        many => format!("; {many} objects are on no record and go when they are a day old"),
    };
    if collected.files == 0 && collected.leftovers == 0 {
        return format!("nothing to remove{in_use}{young}");
    }
    let s = |count| if count == 1 { "" } else { "s" };
    let (files, leftovers) = (collected.files, collected.leftovers);
    format!(
        "{verb} {files} file{} and {leftovers} leftover{} with {}{in_use}{young}",
        s(files),
        s(leftovers),
        amount::about(collected.bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_is_told_in_one_sentence() {
        let told = |dry, files, leftovers, in_use| {
            let world = "w".parse().expect("an id");
            let unrecorded = in_use / 3;
            sentence(&Collected { world, dry, files, leftovers, bytes: 1_536, in_use, unrecorded })
        };
        assert_eq!(told(true, 0, 0, 0), "nothing to remove");
        assert_eq!(told(false, 0, 0, 1), "nothing to remove; 1 old file is in use and stays");
        assert_eq!(told(true, 2, 1, 0), "would remove 2 files and 1 leftover with 1.5 KiB");
        let in_use = "removed 1 file and 0 leftovers with 1.5 KiB; 3 old files are in use and stay; \
                      1 object is on no record and goes when it is a day old";
        assert_eq!(told(false, 1, 0, 3), in_use);
    }
}
