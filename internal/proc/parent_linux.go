package proc

import (
	"fmt"
	"os"
	"strings"
)

// ParentName is the name of the program that has started us (proc(5), /proc/PID/comm), ""
// if it is not known.
func ParentName() string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	return strings.TrimSuffix(string(name), "\n")
}
