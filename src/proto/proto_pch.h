// The generated messages and the parts of the standard library that rooms which read them need, precompiled.
#pragma once

#include <fleuve/plan.pb.h>
#include <spark/connect/base.pb.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
