// Ways to make a valid program's text invalid. Each is invalid whatever the program is.
#include "driver/fuzz/check.h"

namespace tilewright::fuzz {
namespace {

using Lines = std::vector<std::string>;

Lines split(const std::string& text) {
  Lines lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

std::string join(const Lines& lines) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) out += (i ? "\n" : "") + lines[i];
  return out;
}

bool contains(const std::string& line, std::string_view what) { return line.find(what) != std::string::npos; }

// A random line that the predicate accepts.
std::optional<size_t> find_line(const Lines& lines, Random& random, bool (*accepts)(const std::string&)) {
  std::vector<size_t> fits;
  for (size_t i = 0; i < lines.size(); ++i)
    if (accepts(lines[i])) fits.push_back(i);
  return fits.empty() ? std::nullopt : std::optional(random.pick(fits));
}

bool replace_first(std::string& line, std::string_view from, std::string_view to) {
  const size_t at = line.find(from);
  if (at == std::string::npos) return false;
  line.replace(at, from.size(), to);
  return true;
}

bool declares_tile(const std::string& l) { return l.rfind("    shared ", 0) == 0 || l.rfind("    fragment ", 0) == 0; }
bool is_launch(const std::string& l) { return l.rfind("  launch ", 0) == 0; }
bool is_map(const std::string& l) { return contains(l, " map i in ") || l.rfind("    map i in ", 0) == 0; }

// Puts a line at the head of the launch's statements.
bool insert_statement(Lines& lines, const std::string& text) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_launch(lines[i])) continue;
    size_t at = i + 1;
    while (at < lines.size() && (declares_tile(lines[at]) || lines[at].rfind("    local ", 0) == 0)) ++at;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), "    " + text);
    return true;
  }
  return false;
}

struct Way {
  const char* what;
  bool (*apply)(Lines&, Random&);
};

constexpr Way kWays[] = {
    {"a brace is missing",
     [](Lines& lines, Random&) {
       while (!lines.empty() && lines.back().empty()) lines.pop_back();
       if (lines.empty()) return false;
       lines.pop_back();
       return true;
     }},
    {"a character that no text has",
     [](Lines& lines, Random& random) {
       std::string& line = lines[static_cast<size_t>(random.below(static_cast<int64_t>(lines.size()) - 1))];
       line.insert(static_cast<size_t>(random.below(static_cast<int64_t>(line.size()) + 1)), "$");
       return !contains(line, "\"");
     }},
    {"a name that is not declared",
     [](Lines& lines, Random&) { return insert_statement(lines, "u0: int32 = nowhere + 1"); }},
    {"a declaration is missing",
     [](Lines& lines, Random& random) {
       const auto at = find_line(lines, random, declares_tile);
       if (!at) return false;
       const size_t begin = lines[*at].find_first_not_of(' ', lines[*at].find(' ', 4));
       const std::string name = lines[*at].substr(begin, lines[*at].find(':') - begin);
       int uses = 0;
       for (const std::string& l : lines)
         uses += contains(l, "=" + name + " ") || contains(l, "=" + name + "[") || contains(l, " " + name + "[");
       lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(*at));
       return uses > 0;
     }},
    {"a dtype that does not exist",
     [](Lines& lines, Random& random) {
       const auto at = find_line(lines, random, declares_tile);
       return at && replace_first(lines[*at], "[", "x[");
     }},
    {"an empty tile",
     [](Lines& lines, Random& random) {
       const auto at = find_line(lines, random, declares_tile);
       return at && !contains(lines[*at], "view=") && replace_first(lines[*at], "[", "[0, ");
     }},
    {"a negative tile",
     [](Lines& lines, Random& random) {
       const auto at = find_line(lines, random, declares_tile);
       return at && !contains(lines[*at], "view=") && replace_first(lines[*at], "[", "[-3, ");
     }},
    {"no threads",
     [](Lines& lines, Random& random) {
       const auto at = find_line(lines, random, is_launch);
       if (!at) return false;
       const size_t tx = lines[*at].find("tx: ");
       if (tx == std::string::npos) return false;
       lines[*at].replace(tx + 4, lines[*at].find(')', tx) - tx - 4, random.chance(50) ? "0" : "5000");
       return true;
     }},
    {"a negative extent",
     [](Lines& lines, Random& random) {
       const auto at = find_line(lines, random, is_map);
       return at && replace_first(lines[*at], " in ", " in -");
     }},
    {"break outside of a loop", [](Lines& lines, Random&) { return insert_statement(lines, "break"); }},
    {"continue outside of a loop", [](Lines& lines, Random&) { return insert_statement(lines, "continue"); }},
    {"a float where an integer is declared",
     [](Lines& lines, Random&) { return insert_statement(lines, "u0: int32 = 0.5"); }},
    {"a comparison of two types", [](Lines& lines, Random&) { return insert_statement(lines, "u0: bool = 0.5 < bx"); }},
    {"a variable bound twice",
     [](Lines& lines, Random&) { return insert_statement(lines, "u0: int32 = 1\n    u0: int32 = 2"); }},
    {"a role that is not made of warps",
     [](Lines& lines, Random&) { return insert_statement(lines, "role 0..5 {\n    }"); }},
    {"a statement that does not exist",
     [](Lines& lines, Random&) { return insert_statement(lines, "tile from=t0 to=t1"); }},
    {"a field that the statement does not have",
     [](Lines& lines, Random&) { return insert_statement(lines, "sync block depth=3"); }},
    {"a function that does not exist",
     [](Lines& lines, Random&) { return insert_statement(lines, "u0: float32 = exq(1.5)"); }},
    {"too many operands", [](Lines& lines, Random&) { return insert_statement(lines, "u0: float32 = exp(1.5, 2.5)"); }},
    {"too many indices of a store",
     [](Lines& lines, Random&) { return insert_statement(lines, "counters[0, 0] = 1"); }},
    {"a store of another type", [](Lines& lines, Random&) { return insert_statement(lines, "counters[0] = 0.5"); }},
    {"a float index", [](Lines& lines, Random&) { return insert_statement(lines, "counters[0.5] = 1"); }},
    {"a shuffle of an impossible width",
     [](Lines& lines, Random&) { return insert_statement(lines, "u0: int32 = shuffle xor value=1 lane=1 width=12"); }},
    {"a condition that is no bool", [](Lines& lines, Random&) { return insert_statement(lines, "if 3 {\n    }"); }},
    {"a wait for what is no barrier",
     [](Lines& lines, Random&) { return insert_statement(lines, "wait barrier=counters[0] parity=0"); }},
    {"a gemm of vectors",
     [](Lines& lines, Random&) { return insert_statement(lines, "gemm a=counters b=counters c=counters"); }},
    {"a number that does not fit",
     [](Lines& lines, Random&) { return insert_statement(lines, "u0: int32 = 99999999999999999999"); }},
    {"an unknown enumerator", [](Lines& lines, Random&) { return insert_statement(lines, "sync everything"); }},
};

}  // namespace

std::string spoil(const std::string& text, Random& random, std::string& what) {
  while (true) {
    const Way& way = kWays[random.below(static_cast<int64_t>(std::size(kWays)))];
    Lines lines = split(text);
    if (!way.apply(lines, random)) continue;
    what = way.what;
    return join(lines);
  }
}

}  // namespace tilewright::fuzz
