// Light or dark: what the system says, unless somebody chose.
import { effect, signal } from "@preact/signals";

export type Choice = "system" | "light" | "dark";
const KEY = "wharf.theme";
const media = matchMedia("(prefers-color-scheme: dark)");
const system = signal(media.matches);
media.addEventListener("change", () => (system.value = media.matches));

export const choice = signal<Choice>((localStorage.getItem(KEY) as Choice | null) ?? "system");
export const theme = signal<"light" | "dark">("light");

effect(() => {
  const dark = choice.value === "dark" || (choice.value === "system" && system.value);
  theme.value = dark ? "dark" : "light";
  document.documentElement.dataset["theme"] = theme.value;
});

export function choose(next: Choice): void {
  choice.value = next;
  if (next === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
}
