// The theme of a page and its search. Without this the pages can be read all the same.
"use strict";
(() => {
  const KEY = "wharf.theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function paint() {
    const chosen = stored();
    root.dataset.theme = chosen === "dark" || (chosen !== "light" && system.matches) ? "dark" : "light";
  }

  // Before the page is drawn, so that it does not flash.
  paint();
  system.addEventListener("change", paint);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => (button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark");
    button.hidden = false;
    label();
    system.addEventListener("change", label);
    button.addEventListener("click", () => {
      try {
        localStorage.setItem(KEY, root.dataset.theme === "dark" ? "light" : "dark");
      } catch {
        root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
        return label();
      }
      paint();
      label();
    });
    search(document.getElementById("search"), document.getElementById("found"));
  });

  const SHOWN = 20;
  /** Places of one page, so that a long one does not hide the others. */
  const OF_A_PAGE = 4;
  let loading;

  /** The index, asked for once somebody searches. */
  function load() {
    loading ??= fetch(`${document.body.dataset.root}search.json`).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.status}`);
      return answer.json();
    });
    loading.catch(() => (loading = undefined));
    return loading;
  }

  function search(input, found) {
    input.hidden = false;
    let asked = 0;
    const close = () => (found.hidden = true);
    const links = () => [...found.querySelectorAll("a")];
    const refresh = async () => {
      const words = wordsOf(input.value);
      const turn = ++asked;
      if (words.length === 0) return close();
      let lines;
      try {
        lines = look(await load(), words);
      } catch {
        lines = undefined;
      }
      if (turn !== asked) return;
      show(found, lines);
    };
    input.addEventListener("focus", () => load().catch(() => {}));
    input.addEventListener("input", refresh);
    document.addEventListener("keydown", (event) => {
      const at = links().indexOf(document.activeElement);
      if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) {
        event.preventDefault();
        input.focus();
      } else if (event.key === "Escape" && !found.hidden) {
        close();
        input.focus();
      } else if (event.key === "ArrowDown" && !found.hidden && (at >= 0 || document.activeElement === input)) {
        event.preventDefault();
        links()[at + 1]?.focus();
      } else if (event.key === "ArrowUp" && at >= 0) {
        event.preventDefault();
        (links()[at - 1] ?? input).focus();
      } else if (event.key === "Enter" && document.activeElement === input) {
        links()[0]?.click();
      }
    });
    document.addEventListener("click", (event) => {
      if (!event.target.closest(".search")) close();
      else if (event.target.closest("#found a")) close();
    });
  }

  function wordsOf(text) {
    return text.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter((word) => word.length > 0);
  }

  /** The parts that hold all words; the last one may be the beginning of a word. */
  function look(index, words) {
    let hits;
    words.forEach((word, at) => {
      const last = at === words.length - 1;
      const parts = new Map();
      const take = (key, weight) => {
        let part = 0;
        for (const distance of index.words[key]) {
          part += distance;
          parts.set(part, Math.max(parts.get(part) ?? 0, weight));
        }
      };
      if (Object.hasOwn(index.words, word)) take(word, 2);
      if (last) for (const key of Object.keys(index.words)) if (key !== word && key.startsWith(word)) take(key, 1);
      // A word that stands everywhere is in no index and rules nothing out.
      if (parts.size === 0 && !last && word.length < 5) return;
      hits = hits === undefined ? parts : new Map([...hits].filter(([part]) => parts.has(part)).map(([part, sum]) => [part, sum + parts.get(part)]));
    });
    const weigh = ([part, sum]) => {
      const [page, heading] = index.parts[part];
      const named = (text, weight) => words.filter((word) => text.toLowerCase().includes(word)).length * weight;
      const [name, title, section] = index.pages[page];
      // Lists of pages and what was decided or changed once come after what holds now.
      const aside = name === "" || name === "project/changelog" || section === "Decisions" ? 6 : 0;
      return [part, sum + named(heading, 6) + named(title, 3) - aside];
    };
    const ranked = [...(hits ?? [])].map(weigh).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const counts = new Map();
    const best = ranked.filter(([part]) => {
      const [page] = index.parts[part];
      counts.set(page, (counts.get(page) ?? 0) + 1);
      return counts.get(page) <= OF_A_PAGE;
    });
    return best.slice(0, SHOWN).map(([part]) => {
      const [page, heading, slug] = index.parts[part];
      const [name, title, section] = index.pages[page];
      // All pages of errors have the same headings.
      const shown = section === "Errors" && heading !== title ? `${title}: ${heading}` : heading || title;
      return { heading: shown, where: [section, title].filter(Boolean).join(" · "), address: addressOf(name, slug) };
    });
  }

  function addressOf(name, slug) {
    const { root, suffix } = document.body.dataset;
    const page = name === "" ? (suffix === "" ? "/docs" : `${root}index${suffix}`) : `${root}${name}${suffix}`;
    return slug ? `${page}#${slug}` : page;
  }

  function show(found, lines) {
    found.replaceChildren();
    const note = document.createElement("p");
    note.setAttribute("role", "status");
    if (lines === undefined) note.textContent = "The index cannot be read. Pages that are opened as files have no search: serve the folder, or open /docs of a core.";
    else note.textContent = lines.length === 0 ? "Nothing found." : lines.length === 1 ? "1 place" : `${lines.length === SHOWN ? "the best " : ""}${lines.length} places`;
    found.append(note);
    const list = document.createElement("ul");
    for (const line of lines ?? []) {
      const link = document.createElement("a");
      link.href = line.address;
      link.textContent = line.heading;
      const where = document.createElement("span");
      where.textContent = line.where;
      link.append(where);
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    found.append(list);
    found.hidden = false;
  }
})();
