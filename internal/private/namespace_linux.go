package private

import (
	"fmt"
	"os"
	"strings"
)

// isUnmapped reports whether uid is the one that the files of all users show who have none
// in this process's user namespace (user_namespaces(7), "Unmapped user and group IDs"),
// and is not a user's of the namespace as well.
func isUnmapped(uid int) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != fmt.Sprint(uid) {
		return false
	}
	uidMap, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !isMapped(string(uidMap), uid)
}

// isMapped looks for uid in a uid_map, whose lines are the first number inside the
// namespace, the first outside, and their count. One that cannot be read counts as having
// it.
func isMapped(uidMap string, uid int) bool {
	for line := range strings.Lines(uidMap) {
		var inside, outside, count int64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil {
			return true
		}
		if int64(uid) >= inside && int64(uid)-inside < count {
			return true
		}
	}
	return uidMap == ""
}
