package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Environment is one process of a function and its Runtime API.
type Environment struct {
	*Server
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs a function's binary with env, which should only contain variables of this
// process that a deployed function would have. The function's output goes to log.
func Start(binary string, env []string, log io.Writer) (*Environment, error) {
	s, err := Listen()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary)
	cmd.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + s.Addr(), "AWS_LAMBDA_FUNCTION_NAME=gateway", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256"}, env...)
	cmd.Stdout, cmd.Stderr = log, log
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("runtimeapi: start %s: %w", binary, err), s.Close())
	}
	e := &Environment{Server: s, cmd: cmd, ended: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		s.failAll(fmt.Errorf("runtimeapi: the function ended: %w", errors.Join(err, ErrStopped)))
		close(e.ended)
	}()
	return e, nil
}

// Ended is closed when the process has ended.
func (e *Environment) Ended() <-chan struct{} { return e.ended }

// PID returns the function's process id.
func (e *Environment) PID() int { return e.cmd.Process.Pid }

// Stop ends the process: SIGTERM as Lambda does, and SIGKILL 500 ms later.
func (e *Environment) Stop() error {
	_ = e.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-e.ended:
	case <-time.After(500 * time.Millisecond):
		_ = e.cmd.Process.Kill()
		<-e.ended
	}
	return e.Close()
}

// Pool runs one function in as many environments as it has concurrent events, as Lambda
// does. An environment is reused after its event has been settled.
type Pool struct {
	Binary string
	Env    []string
	Log    io.Writer
	Max    int // concurrent environments; 10 if zero. More events wait.

	once    sync.Once
	busy    chan struct{} // one for each running event
	mu      sync.Mutex
	idle    []*Environment
	started int
}

// Started returns the number of environments so far: each is a cold start.
func (p *Pool) Started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// Running returns the number of events that have not been settled.
func (p *Pool) Running() int {
	p.once.Do(p.init)
	return len(p.busy)
}

func (p *Pool) init() {
	n := p.Max
	if n <= 0 {
		n = 10
	}
	p.busy = make(chan struct{}, n)
}

// Invoke passes an event to an idle environment, or starts one.
func (p *Pool) Invoke(ctx context.Context, event []byte, timeout time.Duration) (*Response, error) {
	p.once.Do(p.init)
	select {
	case p.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	e, err := p.take()
	if err != nil {
		<-p.busy
		return nil, err
	}
	a, err := e.Invoke(ctx, event, timeout)
	var failed *FunctionError
	switch {
	case err == nil:
		go func() { // ends with the event, or with the process
			select {
			case <-a.Settled:
				p.free(e)
			case <-e.ended:
				<-p.busy
			}
		}()
	case errors.As(err, &failed):
		p.free(e)
	default:
		_ = e.Stop() // its state is unknown
		<-p.busy
	}
	return a, err
}

// take returns an environment that is idle and alive, or a new one.
func (p *Pool) take() (*Environment, error) {
	p.mu.Lock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		e := p.idle[n-1]
		p.idle = p.idle[:n-1]
		select {
		case <-e.ended:
		default:
			p.mu.Unlock()
			return e, nil
		}
	}
	p.started++
	p.mu.Unlock()
	return Start(p.Binary, p.Env, p.Log)
}

func (p *Pool) free(e *Environment) {
	p.mu.Lock()
	p.idle = append(p.idle, e)
	p.mu.Unlock()
	<-p.busy
}

// Close waits until no event is running, or ctx ends, and stops the environments. Invoke
// must not be called afterwards.
func (p *Pool) Close(ctx context.Context) error {
	p.once.Do(p.init)
	var errs []error
	for range cap(p.busy) {
		select {
		case p.busy <- struct{}{}:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("runtimeapi: an event is still under way in %s", p.Binary))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.idle {
		errs = append(errs, e.Stop())
	}
	return errors.Join(errs...)
}

// HostEnv returns the variables of this process that a function may see: AWS endpoints
// and credentials.
func HostEnv() []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB",
		"AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_KMS", "SSL_CERT_FILE", "SSL_CERT_DIR",
	} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
