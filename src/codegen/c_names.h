// Names of variables and buffers in C text: the user's where they are free, with a number where they are not.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/node.h"

namespace tilewright::codegen {

class Names {
 public:
  // Nothing is ever called one of `reserved`, which must outlive the names, or a word of C++.
  explicit Names(const std::set<std::string>& reserved) : reserved_(reserved) { open(); }

  // A scope hides nothing of the scopes around it: names are unique where they can be seen.
  void open() { scopes_.emplace_back(); }
  void close();
  std::string declare(ir::VarId id, const std::string& wish) { return vars_[id] = fresh(wish); }
  std::string declare(ir::BufferId id, const std::string& wish) { return buffers_[id] = fresh(wish); }
  std::string fresh(const std::string& wish);  // for something without an id
  const std::string& of(ir::VarId id) const { return vars_.at(id); }
  const std::string& of(ir::BufferId id) const { return buffers_.at(id); }
  bool knows(ir::VarId id) const { return vars_.contains(id); }

 private:
  const std::set<std::string>& reserved_;
  std::vector<std::set<std::string>> scopes_;
  std::set<std::string> visible_;
  std::map<ir::VarId, std::string> vars_;
  std::map<ir::BufferId, std::string> buffers_;
};

}  // namespace tilewright::codegen
