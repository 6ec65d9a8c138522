// Reads the marker lines of the embedded texts: "//@ name: needs needs", then the piece up to the next blank line.
#include "scalar/pieces.h"

#include "embedded_text.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

struct Piece {
  std::string name;
  std::vector<std::string> needs;
  std::string text;
};

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> found;
  for (size_t at = 0; at < line.size();) {
    size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) found.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

void read_pieces(std::string_view text, std::vector<Piece>& pieces) {
  bool inside = false;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("//@ ")) {
      size_t colon = line.find(':');
      check_internal(colon != line.npos, "marker without a colon: {}", line);
      pieces.push_back({std::string(line.substr(4, colon - 4)), words(line.substr(colon + 1)), ""});
      inside = true;
    } else if (line.empty()) {
      inside = false;
    } else if (inside) {
      pieces.back().text += std::string(line) + "\n";
    }
  }
}

struct Library {
  std::vector<Piece> pieces;
  std::unordered_map<std::string, size_t> index;
};

const Library& library() {
  static const Library all = [] {
    Library made;
    for (const char* text : {text::scalar_types, text::scalar_integer, text::scalar_convert, text::scalar_float,
                             text::scalar_directed, text::scalar_library, text::scalar_math})
      read_pieces(text, made.pieces);
    for (size_t i = 0; i < made.pieces.size(); ++i) {
      bool fresh = made.index.emplace(made.pieces[i].name, i).second;
      check_internal(fresh, "two pieces are named {}", made.pieces[i].name);
    }
    return made;
  }();
  return all;
}

struct Writer {
  std::unordered_map<std::string, Piece> own;
  std::set<std::string> done;
  std::string out;

  const Piece& find(const std::string& key) const {
    if (auto found = own.find(key); found != own.end()) return found->second;
    const Library& all = library();
    auto found = all.index.find(key);
    check_internal(found != all.index.end(), "there is no scalar text named {}", key);
    return all.pieces[found->second];
  }
  void add(std::string_view name) {
    std::string key(name.substr(0, name.find('<')));
    if (!done.insert(key).second) return;
    const Piece& piece = find(key);
    for (const std::string& need : piece.needs) add(need);
    out += piece.text;
  }
};

}  // namespace

std::string pieces_text(const std::set<std::string>& names) { return pieces_text(names, {}); }

std::string pieces_text(const std::set<std::string>& names, std::span<const char* const> own) {
  Writer writer;
  for (const char* text : own) {
    std::vector<Piece> pieces;
    read_pieces(text, pieces);
    for (Piece& piece : pieces) writer.own[piece.name] = std::move(piece);
  }
  writer.add("types");
  for (const std::string& name : names) writer.add(name);
  return writer.out;
}

std::vector<std::string> piece_names() {
  std::vector<std::string> names;
  for (const Piece& piece : library().pieces) names.push_back(piece.name);
  return names;
}

}  // namespace tilewright
