#include "cli/progress_bar.h"

#include <gtest/gtest.h>

namespace fleuve::cli {
namespace {

TEST(ProgressBar, SaysWhatHowFarAndOfHowMany) {
  EXPECT_EQ(ProgressLine("files", 5, 10, 40), "files [#########---------]  50 % 5 of 10");
  EXPECT_EQ(ProgressLine("files", 10, 10, 40), "files [#################] 100 % 10 of 10");
  EXPECT_EQ(ProgressLine("files", 0, 10, 26), "files   0 % 0 of 10") << "no room for a bar";
  EXPECT_EQ(ProgressLine("files", 12, 10, 40).substr(0, 6), "files ") << "more than was thought";
  EXPECT_EQ(ProgressLine("files", 7, 0, 40), "files 7");
  EXPECT_EQ(ProgressLine("files", 5, 10, 8).size(), 8u);
}

}  // namespace
}  // namespace fleuve::cli
