package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// shedPages gives back, from time to time, the pages of the program's file, and
// of the system's library that it is linked with, that are mapped into memory.
// Each first use of one maps its neighbours as well, unless pageByPage prevents
// it, and what ran once, such as all that runs at the start, else stays until the
// process ends: twice what is in use. The pages stay in the system's cache of
// files, so nothing is read again.
func shedPages(ctx context.Context) error {
	areas, err := ownAreas()
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	every := shedEvery
	if undo, err := pageByPage(areas); err == nil {
		defer undo()
		every = shedSinglesEvery
	}
	for ctx.Err() == nil {
		shed(areas)
		pause(ctx, every)
	}
	return nil
}

func shed(areas []area) {
	for _, a := range areas {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, a.from, a.to-a.from, syscall.MADV_DONTNEED) // advice: what stays does no harm
	}
}

// area is a range of addresses.
type area struct{ from, to uintptr }

// ownAreas finds where the program and its libraries are mapped; see cleanAreas.
func ownAreas() ([]area, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return cleanAreas(f), nil
}

// cleanAreas gives the areas in which files are mapped for this process alone,
// but for those that can be written, and those that hold a page that was: it
// would lose what was written.
func cleanAreas(smaps io.Reader) []area {
	var found []area
	ours := false // the lines that follow tell of the last area found
	for sc := bufio.NewScanner(smaps); sc.Scan(); {
		key, value, _ := strings.Cut(sc.Text(), " ")
		switch {
		case strings.HasSuffix(key, ":"):
			if ours && key == "Anonymous:" && strings.TrimSpace(value) != "0 kB" {
				found, ours = found[:len(found)-1], false
			}
		default: // FROM-TO, then permissions, offset, device, inode, path
			var a area
			f := strings.Fields(value)
			_, err := fmt.Sscanf(key, "%x-%x", &a.from, &a.to)
			ours = err == nil && len(f) == 5 && strings.HasPrefix(f[4], "/") && f[0][1] == '-' && f[0][3] == 'p'
			if ours {
				found = append(found, a)
			}
		}
	}
	return found
}
