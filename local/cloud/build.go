package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gateway/local/onlambda"
)

// builder makes the functions' binaries, one at a time, and reports that.
type builder struct {
	root, dir string // folders of the source and of the binaries
	log       io.Writer
	mu        sync.Mutex
}

// build makes one binary, unless it is up to date.
func (b *builder) build(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	begun := time.Now()
	_, _ = fmt.Fprintf(b.log, "building the function %s ...\n", name)
	if err := onlambda.Build(ctx, b.root, b.dir, name); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.log, "built the function %s in %s\n", name, time.Since(begun).Round(10*time.Millisecond))
	return nil
}

// container is the container's binary on this machine.
type container struct {
	builder *builder
	data    string
	env     []string

	mu   sync.Mutex
	cmd  *exec.Cmd // nil until it is started
	done chan error
}

// start builds and starts the container. When the container is ready, start returns its
// address.
func (c *container) start(ctx context.Context) (addr string, err error) {
	if err := c.builder.build(ctx, "container"); err != nil {
		return "", err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr = ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(c.builder.dir, "container", "gateway"))
	cmd.Env = append(c.env, "GATEWAY_ADDR="+addr, "GATEWAY_JOURNAL="+filepath.Join(c.data, "container-journal"))
	cmd.Stderr = os.Stderr
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("container: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		res, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
			c.mu.Lock()
			c.cmd, c.done = cmd, done
			c.mu.Unlock()
			return addr, nil
		}
		select {
		case err := <-done:
			return "", fmt.Errorf("container: it ended: %w", errors.Join(err, io.ErrUnexpectedEOF))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop lets the container finish its answers and send its events.
func (c *container) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case err := <-c.done:
		return err
	case <-time.After(closeTime + 10*time.Second):
		return errors.Join(errors.New("container: it does not stop"), c.cmd.Process.Kill())
	}
}
