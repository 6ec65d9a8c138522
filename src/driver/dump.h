// TILEWRIGHT_DUMP=folder: every stage of every compilation as a file, program.NN-stage.tile.
#pragma once
#include <string>

#include "ir/program.h"

namespace tilewright {

class Dump {
 public:
  explicit Dump(std::string program_name);  // reads TILEWRIGHT_DUMP
  bool wanted() const { return !folder_.empty(); }
  void write(const char* stage, const ir::TileProgram& program);
  void write(const char* stage, const ir::LoopProgram& program);
  void write(const char* stage, const ir::ThreadProgram& program);
  void write_text(const char* stage, const char* extension, const std::string& text);

 private:
  std::string folder_, program_;
  int next_ = 1;
};

}  // namespace tilewright
