#include "support/diagnostic.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

constexpr const char* kAreas[] = {"internal", "build", "parse", "verify", "launch",
                                  "cpu",      "run",   "tool",  "cuda",   "simulate"};

std::string place(const SourceLocation& location) {
  if (!location.known()) return location.file.empty() ? "" : fmt::format("\n  --> {}", location.file);
  std::string at = fmt::format("\n  --> {}:{}", location.file, location.line);
  return location.column > 0 ? at + fmt::format(":{}", location.column) : at;
}

// Under the column, which counts bytes: tabs stay tabs, and a character of several bytes is one.
std::string caret(const std::string& line, int column) {
  if (column < 1 || static_cast<size_t>(column) > line.size()) return "";
  std::string before;
  for (int i = 0; i + 1 < column; ++i) {
    const auto byte = static_cast<unsigned char>(line[static_cast<size_t>(i)]);
    if ((byte & 0xC0) != 0x80) before += byte == '\t' ? '\t' : ' ';
  }
  return fmt::format("\n        | {}^", before);
}

std::string source_line(const SourceLocation& location) {
  if (!location.known()) return "";
  std::ifstream file(location.file);
  std::string line;
  for (int i = 0; i < location.line; ++i)
    if (!std::getline(file, line)) return "";
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return fmt::format("\n  {:>5} | {}", location.line, line) + caret(line, location.column);
}

nlohmann::json json_of(const SourceLocation& at) {
  return {{"file", at.file}, {"line", at.line}, {"column", at.column}};
}

}  // namespace

std::string Diagnostic::code_text() const { return fmt::format("TW{:04}", code); }

const char* Diagnostic::area() const {
  size_t index = code / 1000;
  return index < std::size(kAreas) ? kAreas[index] : "unknown";
}

std::string Diagnostic::to_string() const {
  std::string text =
      fmt::format("{} {} {}: {}", severity == Severity::Error ? "error" : "warning", code_text(), area(), message);
  text += place(location) + source_line(location);
  for (const Note& note : notes) text += fmt::format("\nnote: {}", note.message) + place(note.location);
  if (!help.empty()) text += fmt::format("\nhelp: {}", help);
  return text;
}

std::string Diagnostic::to_json() const {
  nlohmann::json object = json_of(location);
  object["severity"] = severity == Severity::Error ? "error" : "warning";
  object["code"] = code_text();
  object["area"] = area();
  object["message"] = message;
  object["help"] = help;
  object["notes"] = nlohmann::json::array();
  for (const Note& note : notes) {
    nlohmann::json item = json_of(note.location);
    item["message"] = note.message;
    object["notes"].push_back(item);
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error::Error(Diagnostic diagnostic) : diagnostic_(std::move(diagnostic)), text_(diagnostic_.to_string()) {}

Diagnostic make_diagnostic(Code code, SourceLocation location, std::string message, std::string help,
                           std::vector<Note> notes) {
  Diagnostic d;
  d.code = static_cast<uint16_t>(code);
  d.message = std::move(message);
  d.location = std::move(location);
  d.notes = std::move(notes);
  d.help = std::move(help);
  return d;
}

void fail(Code code, SourceLocation location, std::string message, std::string help, std::vector<Note> notes) {
  Diagnostic d = make_diagnostic(code, std::move(location), std::move(message), std::move(help), std::move(notes));
  const int area = static_cast<int>(code) / 1000;
  const bool cuda_run = static_cast<int>(code) / 100 == 81;
  if (area == 4 || area == 6 || area == 9 || cuda_run) throw LaunchError(std::move(d));
  throw CompileError(std::move(d));
}

void fail_internal(std::string message, const char* file, int line) {
  Diagnostic d = make_diagnostic(Code::Internal, {file, line, 0}, std::move(message),
                                 "this is a mistake in Tilewright, not in your program: please report it");
  throw InternalError(std::move(d));
}

}  // namespace tilewright
