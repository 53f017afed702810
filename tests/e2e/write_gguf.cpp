// Writes a small GGUF file for the end-to-end tests: KIND PATH.
#include <cstdio>
#include <string>
#include <string_view>

#include "support/gguf_builder.hpp"

int main(int argc, char** argv) {
  namespace test = paceline::test;
  if (argc != 3) return 2;
  const std::string_view kind = argv[1];
  test::TinyModel model;
  if (kind == "window") model.kind = test::TinyModel::Kind::sliding_window;
  if (kind == "recurrent") model.kind = test::TinyModel::Kind::recurrent;
  if (kind == "other-words") model.vocabulary.pieces.at(3) += "x";
  if (kind == "padded") model.vocabulary.padding += 64;
  if (kind == "small") model.layers = 1;
  if (kind == "no-begin") model.vocabulary.add_begin_of_text = false;
  if (kind == "twice") model.vocabulary.other_texts[270] = model.vocabulary.pieces.at(0);
  if (kind == "encoder") model.kind = test::TinyModel::Kind::encoder;
  // Our reader has nothing against it, libllama's vocabulary has.
  if (kind == "odd-tokenizer")
    model.metadata["tokenizer.ggml.model"] = std::string("no such tokenizer");
  test::write_tiny(argv[2], model);
  if (kind == "cut") test::cut_file(argv[2], 0.5);
  return 0;
}
