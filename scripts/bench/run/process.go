package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a server that this command has started.
type process struct {
	cmd    *exec.Cmd
	base   string // http://ADDR
	exited chan struct{}
}

// build compiles the commands into dir and returns their paths by name.
func build(ctx context.Context, dir string, packages map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(packages))
	for name, pkg := range packages {
		out[name] = filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out[name], pkg)
		if b, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s: %w\n%s", pkg, err, b)
		}
	}
	return out, nil
}

// start runs a server and waits for the line that says where it listens: it begins with
// announce and ends with the address.
func start(announce string, env []string, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), env...), os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	go func() {
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			if addr, ok := strings.CutPrefix(sc.Text(), announce); ok {
				select {
				case listening <- addr:
				default:
				}
			}
		}
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	select {
	case addr := <-listening:
		p.base = "http://" + strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/v1")
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s ended before it listened", filepath.Base(path))
	case <-time.After(30 * time.Second):
		p.stop()
		return nil, fmt.Errorf("%s did not listen in time", filepath.Base(path))
	}
}

// stop sends SIGTERM; after 40 seconds it kills the process.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(40 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }
