// Filters that stand in the address.
import { useEffect, useState } from "preact/hooks";
import { place, setQuery } from "../router";

/** A text filter that waits until one has finished typing. */
export function TextFilter({ name, label, wide }: { name: string; label: string; wide?: boolean }) {
  const now = place.value.query.get(name) ?? "";
  const [text, setText] = useState(now);
  useEffect(() => setText(now), [now]);
  useEffect(() => {
    if (text === now) return;
    const timer = setTimeout(() => setQuery({ [name]: text.trim() || undefined }), 300);
    return () => clearTimeout(timer);
  }, [text]);
  return <input class="input" type="search" aria-label={label} placeholder={label} value={text} spellcheck={false} autoComplete="off" onInput={(e) => setText(e.currentTarget.value)} style={wide ? { minWidth: "170px" } : undefined} />;
}

