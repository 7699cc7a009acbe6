#include "connectors/folder_watch.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace fleuve::connectors {

namespace {

constexpr std::uint32_t kMask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR;
/// File systems whose changes by other machines inotify does not see: NFS, SMB, CIFS, 9p, FUSE, Ceph, AFS.
constexpr std::int64_t kRemoteTypes[] = {0x6969,     0x517B,     0xFF534D42, 0xFE534D42,
                                         0x01021997, 0x65735546, 0x00C36400, 0x5346414F};

struct Subscription {
  std::string root;
  bool recursive = false;
  std::function<void(const FolderEvent&)> callback;
  std::atomic<bool> overflow{false};
  std::mutex running;  ///< held while the callback runs
  bool ended = false;  ///< guarded by `running`
};

using SubscriptionPtr = std::shared_ptr<Subscription>;

bool IsRemote(const std::string& folder) {
  struct statfs info{};
  if (::statfs(folder.c_str(), &info) != 0) {
    return true;
  }
  for (std::int64_t type : kRemoteTypes) {
    if (static_cast<std::int64_t>(static_cast<std::uint32_t>(info.f_type)) == type) {
      return true;
    }
  }
  return false;
}

void CollectFolders(const std::string& folder, std::vector<std::string>* out) {
  out->push_back(folder);
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) {
    return;
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      CollectFolders(folder + "/" + name, out);
    }
  }
  ::closedir(dir);
}

/// The process's inotify instance and its thread. Lives as long as the process.
class Watcher {
 public:
  static Watcher* Get() {
    static auto* watcher = new Watcher();  // never destroyed: its thread may run until the process ends
    return watcher;
  }

  bool Add(const SubscriptionPtr& subscription) {
    std::lock_guard lock(mutex_);
    if (!EnsureStarted()) {
      return false;
    }
    std::vector<std::string> folders;
    if (subscription->recursive) {
      CollectFolders(subscription->root, &folders);
    } else {
      folders.push_back(subscription->root);
    }
    for (const auto& folder : folders) {
      if (!WatchOne(folder, subscription)) {
        RemoveLocked(subscription);
        return false;
      }
    }
    return true;
  }

  void Remove(const SubscriptionPtr& subscription) {
    {
      std::lock_guard lock(mutex_);
      RemoveLocked(subscription);
    }
    std::lock_guard running(subscription->running);
    subscription->ended = true;
  }

 private:
  struct Folder {
    std::string path;
    std::set<SubscriptionPtr> subscriptions;
  };

  bool EnsureStarted() {
    if (fd_ >= 0) {
      return true;
    }
    fd_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd_ < 0) {
      return false;
    }
    std::thread([this] { Loop(); }).detach();
    return true;
  }

  bool WatchOne(const std::string& folder, const SubscriptionPtr& subscription) {
    const int wd = ::inotify_add_watch(fd_, folder.c_str(), kMask);
    if (wd < 0) {
      return false;
    }
    auto& entry = folders_[wd];
    entry.path = folder;
    entry.subscriptions.insert(subscription);
    return true;
  }

  void RemoveLocked(const SubscriptionPtr& subscription) {
    for (auto it = folders_.begin(); it != folders_.end();) {
      it->second.subscriptions.erase(subscription);
      if (it->second.subscriptions.empty()) {
        ::inotify_rm_watch(fd_, it->first);
        it = folders_.erase(it);
      } else {
        ++it;
      }
    }
  }

  static void Call(const SubscriptionPtr& subscription, const FolderEvent& event) {
    std::lock_guard running(subscription->running);
    if (!subscription->ended) {
      subscription->callback(event);
    }
  }

  void Handle(const inotify_event& event) {
    std::vector<SubscriptionPtr> targets;
    FolderEvent change;
    {
      std::lock_guard lock(mutex_);
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        std::set<SubscriptionPtr> all;
        for (auto& [wd, folder] : folders_) {
          all.insert(folder.subscriptions.begin(), folder.subscriptions.end());
        }
        for (const auto& subscription : all) {
          subscription->overflow.store(true);
        }
        targets.assign(all.begin(), all.end());
      } else {
        auto it = folders_.find(event.wd);
        if (it == folders_.end()) {
          return;
        }
        if ((event.mask & IN_IGNORED) != 0) {
          targets.assign(it->second.subscriptions.begin(), it->second.subscriptions.end());
          for (const auto& subscription : targets) {
            subscription->overflow.store(true);
          }
          folders_.erase(it);
        } else {
          targets.assign(it->second.subscriptions.begin(), it->second.subscriptions.end());
          change.path = it->second.path + "/" + (event.len > 0 ? event.name : "");
          change.is_directory = (event.mask & IN_ISDIR) != 0;
          change.is_complete = (event.mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0;
          if (change.is_directory && (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
            for (const auto& subscription : targets) {
              if (subscription->recursive) {
                std::vector<std::string> folders;
                CollectFolders(change.path, &folders);
                for (const auto& folder : folders) {
                  WatchOne(folder, subscription);
                }
                // What was put into the new folder before it was watched gave no event.
                subscription->overflow.store(true);
              }
            }
          }
        }
      }
    }
    for (const auto& subscription : targets) {
      Call(subscription, change);
    }
  }

  void Loop() {
    alignas(inotify_event) char buffer[64 * 1024];
    for (;;) {
      pollfd waiting{fd_, POLLIN, 0};
      if (::poll(&waiting, 1, -1) < 0) {
        continue;
      }
      const ssize_t length = ::read(fd_, buffer, sizeof(buffer));
      for (ssize_t at = 0; at < length;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        Handle(*event);
        at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      }
    }
  }

  std::mutex mutex_;
  int fd_ = -1;
  std::map<int, Folder> folders_;
};

class Watch final : public FolderWatch {
 public:
  explicit Watch(SubscriptionPtr subscription) : subscription_(std::move(subscription)) {}
  ~Watch() override { Watcher::Get()->Remove(subscription_); }
  bool TakeOverflow() override { return subscription_->overflow.exchange(false); }

 private:
  SubscriptionPtr subscription_;
};

}  // namespace

std::unique_ptr<FolderWatch> WatchFolder(const std::string& folder, bool recursive,
                                         std::function<void(const FolderEvent&)> callback) {
  if (IsRemote(folder)) {
    return nullptr;
  }
  auto subscription = std::make_shared<Subscription>();
  subscription->root = folder;
  subscription->recursive = recursive;
  subscription->callback = std::move(callback);
  if (!Watcher::Get()->Add(subscription)) {
    return nullptr;
  }
  return std::make_unique<Watch>(std::move(subscription));
}

}  // namespace fleuve::connectors
