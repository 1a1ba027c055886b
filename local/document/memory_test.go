package document

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// hostile are files that cost much memory if they are read without limits.
var hostile = map[string]func() string{
	"aliases": func() string {
		text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
		for i := 1; i < 200; i++ {
			p := "*a" + strconv.Itoa(i-1)
			text += "a" + strconv.Itoa(i) + ": &a" + strconv.Itoa(i) + " [" + p + strings.Repeat(", "+p, 9) + "]\n"
		}
		return text
	},
	"values":  func() string { return "a: [" + strings.Repeat("1,", 4<<20) + "1]" },
	"lines":   func() string { return strings.Repeat("- a\n", 4<<20) },
	"keys":    func() string { return "{" + strings.Repeat("a: 1, ", 2<<20) + "}" },
	"nesting": func() string { return strings.Repeat("- ", 4<<20) },
	"colons":  func() string { return strings.Repeat("a: ", 4<<20) },
	"braces":  func() string { return strings.Repeat("{", 8<<20) },
	"text":    func() string { return "a: " + strings.Repeat("x", 15<<20) },
	"quoted":  func() string { return `{"a":"` + strings.Repeat("x", 15<<20) + `"}` },
	"JSON":    func() string { return `{"a":[` + strings.Repeat("1,", 4<<20) + "1]}" },
}

// A hostile file takes less than 256 MiB of memory, in a process of its own.
func TestHostileFilesTakeLittleMemory(t *testing.T) {
	const variable, limit = "GATEWAY_TEST_HOSTILE", 256 << 10
	if name := os.Getenv(variable); name != "" {
		_, _ = Parse(name+".yaml", []byte(hostile[name]()))
		raw, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(raw), "VmHWM:")
		kib, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		if kib > limit {
			t.Errorf("%s takes %d KiB", name, kib)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("the most memory of a process is read from /proc")
	}
	for name := range hostile {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestHostileFilesTakeLittleMemory$")
			cmd.Env = append(os.Environ(), variable+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
