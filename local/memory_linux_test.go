package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// writable is in a part of the file that the process has its own copy of.
var writable = []string{"as it was"}

func programAreas(t *testing.T) []area {
	t.Helper()
	areas, err := ownAreas()
	if err != nil {
		t.Fatal(err)
	}
	return areas
}

func TestPagesOfTheProgramAreGivenBackAndComeAgain(t *testing.T) {
	areas := programAreas(t)
	in := func(p uintptr) bool {
		for _, a := range areas {
			if a.from <= p && p < a.to {
				return true
			}
		}
		return false
	}
	if code := reflect.ValueOf(shedPages).Pointer(); !in(code) {
		t.Errorf("the program's code at %x is in none of %x", code, areas)
	}
	if data := uintptr(unsafe.Pointer(&writable)); in(data) {
		t.Errorf("a variable at %x is in %x", data, areas)
	}
	sum, pages := byte(0), 0
	for _, a := range areas {
		for _, page := range mapped(a) {
			sum += page
			pages++
		}
	}
	before := residentFile(t)
	if before < pages*os.Getpagesize()>>10 {
		t.Fatalf("%d KiB of files resident after %d pages were read (sum %d)", before, pages, sum)
	}
	shed(areas)
	if after := residentFile(t); after > before/2 {
		t.Errorf("%d KiB of files resident, %d before", after, before)
	}
	if writable[0] != "as it was" || fmt.Sprintf("%x", sum) == "" {
		t.Error("the process lost what it had written")
	}
}

// mapped reads the first byte of each page of an area.
func mapped(a area) (first []byte) {
	whole := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&a.from))), a.to-a.from)
	for i := 0; i < len(whole); i += os.Getpagesize() {
		first = append(first, whole[i])
	}
	return first
}

// residentFile is the part of the process's files that is mapped, in KiB.
func residentFile(t *testing.T) (kib int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "RssFile: %d kB", &kib); err == nil {
			return kib
		}
	}
	t.Fatal("the status tells no RssFile")
	return 0
}

func TestAreasThatHoldWrittenPagesAreLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name, smaps string
		want        int
	}{
		{"code", "400000-401000 r-xp 00000000 fe:00 1 /bin/gw\nRss: 4 kB\nAnonymous:             0 kB\n", 1},
		{"relocated", "400000-401000 r--p 00000000 fe:00 1 /bin/gw\nRss: 4 kB\nAnonymous:             4 kB\n", 0},
		{"data", "400000-401000 rw-p 00000000 fe:00 1 /bin/gw\nRss: 4 kB\nAnonymous:             0 kB\n", 0},
		{"a library", "400000-401000 r-xp 00000000 fe:00 1 /lib/libc.so\nRss: 4 kB\nAnonymous:             0 kB\n", 1},
		{"a library that was relocated", "400000-401000 r--p 00000000 fe:00 1 /lib/libc.so\nRss: 4 kB\nAnonymous:             4 kB\n", 0},
		{"of the system", "400000-401000 r-xp 00000000 00:00 0 [vdso]\nRss: 4 kB\nAnonymous:             0 kB\n", 0},
		{"shared", "400000-401000 r--s 00000000 fe:00 1 /bin/gw\nRss: 4 kB\nAnonymous:             0 kB\n", 0},
		{"no file", "400000-401000 r-xp 00000000 00:00 0\nRss: 4 kB\nAnonymous:             0 kB\n", 0},
	} {
		if got := cleanAreas(strings.NewReader(c.smaps)); len(got) != c.want {
			t.Errorf("%s: %x", c.name, got)
		}
	}
}

func TestPagesThatNobodyReadsStayOut(t *testing.T) {
	areas := programAreas(t)
	undo, err := pageByPage(areas)
	if err != nil {
		t.Skip("the system refuses to be told:", err)
	}
	defer undo()
	shed(areas)
	before, size, sum := residentFile(t), 0, byte(0)
	for _, a := range areas {
		whole := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&a.from))), a.to-a.from)
		size += len(whole) >> 10
		for i := 0; i < len(whole); i += 16 * os.Getpagesize() {
			sum += whole[i]
		}
	}
	if more := residentFile(t) - before; more > size/4 {
		t.Errorf("%d KiB of %d are resident after a sixteenth of the pages was read (sum %d)", more, size, sum)
	}
}
