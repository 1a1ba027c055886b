// Package emulator runs dynoxide, an emulator of DynamoDB, as a separate process on
// loopback. Tests and the local emulators of AWS use it; nothing deployed does.
package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Binary is where npm installs the emulator, relative to the module's root.
const Binary = "scripts/testdeps/node_modules/@dynoxide/linux-x64/dynoxide"

// Install is the command that installs it.
const Install = "npm ci --prefix scripts/testdeps"

// ErrMissing is given where the emulator is not installed.
var ErrMissing = errors.New(Binary + " is missing (it runs on Linux with an x64 processor); run: " + Install)

// Server is one emulator. Its data is in memory and ends with it.
type Server struct {
	addr   string
	cmd    *exec.Cmd
	ended  chan struct{}
	output startupOutput
}

// Start runs the emulator that is installed below root, the directory of go.mod. Only an
// emulator that is not installed is ErrMissing, which tests skip: another root is a mistake.
func Start(root string) (*Server, error) {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("emulator of DynamoDB: %s is not the root of the module: %w", root, err)
	}
	path := filepath.Join(root, filepath.FromSlash(Binary))
	if _, err := os.Stat(path); err != nil {
		return nil, ErrMissing
	}
	var s *Server
	var err error
	for range 5 { // another process may take the free port first
		if s, err = launch(path); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("emulator of DynamoDB: %w", err)
}

// URL is the endpoint.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends the process.
func (s *Server) Close() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.ended
}

// startTime is how long the emulator may take to answer: far more than it needs, for busy
// machines.
const startTime = time.Minute

func launch(path string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{addr: l.Addr().String(), ended: make(chan struct{})}
	_, port, _ := net.SplitHostPort(s.addr)
	l.Close()
	s.cmd = exec.Command(path, "serve", "--host", "127.0.0.1", "--port", port)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	apart(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // killed by Close
		close(s.ended)
	}()
	deadline := time.After(startTime)
	for {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			c.Close()
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("it ended: %s", s.output.text())
		case <-deadline:
			s.Close()
			return nil, fmt.Errorf("it does not respond: %s", s.output.text())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// startupOutput buffers the output of the process while it starts.
type startupOutput struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *startupOutput) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b.Len() < 4096 {
		s.b.Write(p)
	}
	return len(p), nil
}

func (s *startupOutput) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
