#include "codegen/c_names.h"

#include <fmt/format.h>

#include <cctype>

#include "support/c_words.h"

namespace tilewright::codegen {

namespace {

// Words of C++ and CUDA, names that their headers define, functions that texts call, and what texts call their own.
bool is_taken(const std::string& name) {
  static const std::set<std::string> own = {"call", "failed", "main"};
  const CWord word = c_word(name);
  return own.contains(name) || (word != CWord::None && word != CWord::Function);
}

// Letters, digits and single underscores, beginning with a letter.
std::string identifier(const std::string& wish) {
  std::string out;
  for (char c : wish) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "v" + out;
  return out;
}

}  // namespace

std::string Names::fresh(const std::string& wish) {
  std::string base = identifier(wish);
  // What stands beside user code; and families of macros, which have names of any ending.
  if (base.starts_with("tw_") || base.starts_with("gemm_") || c_word(base) == CWord::Macro) base = "v_" + base;
  std::string name = base;
  for (int n = 1; reserved_.contains(name) || is_taken(name) || visible_.contains(name); ++n)
    name = fmt::format("{}_{}", base, n);
  visible_.insert(name);
  scopes_.back().insert(name);
  return name;
}

void Names::close() {
  for (const std::string& name : scopes_.back()) visible_.erase(name);
  scopes_.pop_back();
}

}  // namespace tilewright::codegen
