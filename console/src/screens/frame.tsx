// What all screens have in common: one heading, acts beside it, and how old the data is.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Resource } from "../api/resource";
import { titleOf } from "../app";
import { span } from "../lib/format";
import { now, Refusal, Skeleton } from "../ui/parts";

export function Screen({ title, heading, acts, children, crumb, fill, narrow, of, lead }: { lead?: ComponentChildren; title: string; heading?: ComponentChildren; acts?: ComponentChildren; children: ComponentChildren; crumb?: ComponentChildren; fill?: boolean; narrow?: boolean; of?: Resource<unknown> }) {
  useEffect(() => {
    titleOf.value = title;
  }, [title]);
  return (
    <div class={`screen${fill ? " fill" : ""}${narrow ? " narrow" : ""}`}>
      {crumb && <div class="crumb">{crumb}</div>}
      <div class="title">
        <h1>{heading ?? title}</h1>
        {of && <Age of={of} />}
        {acts && <div class="acts">{acts}</div>}
      </div>
      {lead && <p class="lead-line">{lead}</p>}
      {children}
    </div>
  );
}

/** Says how old what is shown is, once that matters. */
function Age({ of }: { of: Resource<unknown> }) {
  const at = of.at.value;
  if (!of.error.value || at === undefined) return null;
  return (
    <span class="age">
      <span role="status">Not up to date:</span> read {span(now.value - at)} ago
    </span>
  );
}

/** Data when it is there; else what is in the way. The last data stays while the core is slow or away. */
export function Loaded<T>({ of, children, lines }: { of: Resource<T>; children: (data: T) => ComponentChildren; lines?: number }) {
  const data = of.data.value;
  const error = of.error.value;
  if (data !== undefined)
    return (
      <>
        {error && !error.info.retryable && <Refusal error={error} retry={of.reload} />}
        {children(data)}
      </>
    );
  if (error) return <Refusal error={error} retry={of.reload} />;
  return <Skeleton lines={lines ?? 6} />;
}
