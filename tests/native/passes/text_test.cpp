// Text tests of passes: tests/ir/<pass>/*.test hold CIR, a line `---`, and the CIR after the pass.
// CUVIL_UPDATE_TESTS=1 writes what the pass does now into the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ops/op.h"
#include "passes/passes.h"

namespace cuvil::passes {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string_view name;
  cuvil::Result<> (*run)(ir::Graph&);
};
constexpr Named kNamed[] = {
#define CUVIL_PASS(name, function) {name, function},
#include "passes/passes.def"
#undef CUVIL_PASS
};

std::string read(const fs::path& p) {
  std::ifstream in(p);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

class PassText : public testing::TestWithParam<fs::path> {};

TEST_P(PassText, GivesWhatTheFileSays) {
  const std::string text = read(GetParam());
  const size_t split = text.find("---\n");
  ASSERT_NE(split, std::string::npos) << "no line ---";
  const std::string pass = GetParam().parent_path().filename().string();
  auto named = std::find_if(std::begin(kNamed), std::end(kNamed),
                            [&](const Named& n) { return n.name == pass; });
  ASSERT_NE(named, std::end(kNamed)) << "no pass " << pass;

  auto g = ir::parse(text.substr(0, split), ops::find_desc);
  ASSERT_TRUE(g.ok()) << g.error().found;
  ASSERT_TRUE(ir::verify(**g).ok()) << ir::verify(**g).error().found;
  auto done = named->run(**g);
  ASSERT_TRUE(done.ok()) << done.error().found;
  auto valid = ir::verify(**g);
  EXPECT_TRUE(valid.ok()) << valid.error().found;

  const std::string got = ir::print(**g);
  if (std::getenv("CUVIL_UPDATE_TESTS")) {
    std::ofstream(GetParam()) << text.substr(0, split) << "---\n" << got;
    return;
  }
  EXPECT_EQ(got, text.substr(split + 4));
  // Once is enough.
  ASSERT_TRUE(named->run(**g).ok());
  EXPECT_EQ(ir::print(**g), got) << "the second run changes something";
}

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const Named& n : kNamed) {
    const fs::path folder = fs::path(CUVIL_TESTS_DIR) / "ir" / n.name;
    if (!fs::exists(folder)) continue;
    for (const auto& e : fs::directory_iterator(folder))
      if (e.path().extension() == ".test") out.push_back(e.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(files()), [](const auto& info) {
  std::string name =
      info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

TEST(Pipeline, TimesDumpsAndVerifies) {
  auto g = ir::parse("func @f(%x: f32[2] input(0)) {\n  %0 = exp %x : f32[2]\n  return %x array\n}",
                     ops::find_desc);
  ASSERT_TRUE(g.ok());
  std::map<std::string, std::string> dump;
  std::vector<std::pair<std::string, double>> stages;
  PipelineOptions options;
  options.verify = true;
  options.dump = &dump;
  ASSERT_TRUE(run_pipeline(**g, options, &stages).ok());
  ASSERT_EQ(stages.size(), std::size(kNamed));
  EXPECT_EQ(stages[0].first, "canonicalise");
  EXPECT_NE(dump.at("ir.01.canonicalise").find("exp"), std::string::npos);
  EXPECT_EQ(dump.at("ir.04.dce").find("exp"), std::string::npos);
}

}  // namespace
}  // namespace cuvil::passes
