import { describe, expect, test } from "vitest";
import { readdirSync, readFileSync } from "node:fs";
import { WORDS } from "../src/lib/glossary";

const screens = new URL("../src/screens/", import.meta.url);
const sources = readdirSync(screens).filter((name) => name.endsWith(".tsx")).map((name) => readFileSync(new URL(name, screens), "utf8")).join("\n");

describe("c033_glossary", () => {
  test.each(["World", "Provider", "Ask", "Hold", "Flow", "Schedule", "Trigger", "Receiver"])("%s is explained where it is met", (word) => {
    expect(WORDS).toHaveProperty(word);
    expect(sources).toContain(`<Word name="${word}"`);
  });
  test.each(Object.entries(WORDS))("%s: plain sentences in the present tense", (word, text) => {
    expect(text).toMatch(/^[A-Z].*\.$/);
    expect(text.length).toBeLessThan(200);
    expect(text).not.toMatch(/\b(will|shall|was|were|has been|utilize|leverage)\b/i);
    expect(text.toLowerCase()).not.toMatch(new RegExp(`^an? ${word.toLowerCase()} is`), );
  });
});
