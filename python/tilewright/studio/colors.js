"use strict";
// Words, numbers, texts and comments in colors. They are ranges that the browser paints (CSS Custom Highlights), and no elements: a text of
// 10,000 lines stays as light as it is, and a browser without them shows plain text.

const WORDS = new Set(("alignas and as auto barrier bfloat16 bool break case class clear commit const constexpr continue copy def double drain elif else " +
  "expect extern fill float float16 float32 float64 for fragment from gemm global if import in int int32 int32_t int64 int64_t is lambda launch local " +
  "map not or param pipelined pragma program reduce return role serial set_registers shared static struct symbol template threads to uint16_t uint32_t " +
  "uint64_t uint8_t unroll unsigned view void volatile wait while with yield __device__ __forceinline__ __global__ __launch_bounds__ __restrict__ " +
  "__shared__ True False None").split(" "));

// Of a comment, a text, a number, a word: which of them begins here is which group matched.
const TOKENS = {
  cpp: /(\/\/.*)|("(?:[^"\\]|\\.)*")|\b(\d[\w.]*)|([A-Za-z_]\w*)/g,
  python: /(#.*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(\d[\w.]*)|([A-Za-z_]\w*)/g,
};
const KINDS = ["comment", "quote", "number", "word"];

function languageOf(text) {
  return /C\+\+/.test(text.name) ? "cpp" : "python";
}

const painted = new Map();
if (globalThis.Highlight && CSS.highlights)
  for (const kind of KINDS) {
    painted.set(kind, new Highlight());
    CSS.highlights.set(`tw-${kind}`, painted.get(kind));
  }

function colorLine(node, tokens) {
  for (const found of node.data.matchAll(tokens)) {
    const group = found.slice(1).findIndex((part) => part !== undefined);
    if (KINDS[group] === "word" && !WORDS.has(found[0])) continue;
    const range = new StaticRange({ startContainer: node, startOffset: found.index, endContainer: node, endOffset: found.index + found[0].length });
    painted.get(KINDS[group]).add(range);
  }
}

// A part of a text is colored when it first comes near what its list shows.
function colorWhenSeen(list, language) {
  if (!painted.size) return;
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      for (const line of entry.target.children) if (line.firstChild instanceof Text) colorLine(line.firstChild, TOKENS[language]);
    }
  }, { root: list, rootMargin: "400px" });
  for (const chunk of list.children) watch.observe(chunk);
}
