//go:build !linux

package main

import "time"

// measurable is false: only Linux has clocks with the CPU time of another process.
const measurable = false

func cpuOf(int) time.Duration    { return 0 }
func machineBusy() time.Duration { return 0 }
func peakMiB(int) float64        { return 0 }
func residentMiB(int) float64    { return 0 }
