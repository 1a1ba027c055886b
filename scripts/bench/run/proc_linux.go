package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// measurable reports whether this system can measure the CPU time of a process.
const measurable = true

// cpuOf returns the CPU time that a process has used, to the nanosecond. It reads the clock
// of the other process, because /proc/PID/stat counts in steps of 10 ms.
func cpuOf(pid int) time.Duration {
	var ts syscall.Timespec
	clock := uintptr(^pid<<3 | 2) // CPUCLOCK_SCHED of the process
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

// machineBusy returns the CPU time that all cores have spent on any work.
func machineBusy() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	ticks := 0
	for i, f := range strings.Fields(line)[1:] {
		if n, err := strconv.Atoi(f); err == nil && i != 3 && i != 4 && i < 8 { // not idle, not iowait, not guest
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// peakMiB is the most memory that a process has had resident.
func peakMiB(pid int) float64 { return statusMiB(pid, "VmHWM:") }

// residentMiB is the memory that it has resident now.
func residentMiB(pid int) float64 { return statusMiB(pid, "VmRSS:") }

func statusMiB(pid int, key string) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}
