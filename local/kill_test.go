package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/local/mockprovider"
)

// process is a gateway in a process of its own.
type process struct {
	cmd  *exec.Cmd
	base string
}

// spawn starts this test binary as a gateway on the folder and waits until it is
// ready.
func spawn(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GATEWAY_TEST_CHILD="+dir, "GATEWAY_TEST_ADDR=127.0.0.1:0", "GATEWAY_TEST_FLAGS="+strings.Join(flags, " "),
		"GATEWAY_ADMIN_KEY="+adminKey, "GATEWAY_WORKSPACE_KEY="+workspaceKey)
	return launch(t, cmd)
}

// launch starts a gateway and waits until it is ready.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if base, ok := strings.CutPrefix(lines.Text(), "gateway ready on "); ok {
			p.base = base
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return p
		}
	}
	t.Fatal("the gateway ended before it was ready")
	return nil
}

// sendChat sends one chat and gives its trace id when the whole response came.
func (p *process) sendChat(client *http.Client, mock, body string) (trace string, err error) {
	req, err := http.NewRequest("POST", p.base+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "X-Gateway-Api-Key": workspaceKey, "X-Gateway-Provider": "openai",
		"Authorization": "Bearer mock-own", "X-Gateway-Custom-Host": mock,
	} {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != 200 || strings.Contains(body, `"stream":true`) && !strings.Contains(string(got), "[DONE]") {
		return "", fmt.Errorf("status %d: %s", resp.StatusCode, got)
	}
	return resp.Header.Get("X-Gateway-Trace-Id"), nil
}

// TestKilledAtTwentyPointsNothingAcknowledgedIsLost kills the process while it
// answers, twenty times over, and then looks for every request whose response was
// received whole.
//
//lane:standard
func TestKilledAtTwentyPointsNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	mock := mockprovider.New(mockprovider.Options{})
	addr, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	upstream := "http://" + strings.TrimPrefix(addr, "http://") + "/v1"
	dir := t.TempDir()
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	for point := range 20 {
		p := spawn(t, dir)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
		var wg sync.WaitGroup
		begun := make(chan struct{}, 4)
		for w := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					more := ""
					if (w+n)%2 == 0 {
						more = `,"stream":true`
					}
					trace, err := p.sendChat(client, upstream, chatBody("gpt-4o-mini", fmt.Sprintf("Request %d of %d at %d", n, w, point), more))
					if err != nil {
						return // the process is gone
					}
					if n == 0 {
						begun <- struct{}{}
					}
					mu.Lock()
					acknowledged[trace] = true
					mu.Unlock()
				}
			})
		}
		select {
		case <-begun:
		case <-time.After(2 * time.Minute):
			t.Fatal("no request was answered")
		}
		time.Sleep(time.Duration(point*point) * 300 * time.Microsecond)
		if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait()
		wg.Wait()
		client.CloseIdleConnections()
	}
	if len(acknowledged) < 20 {
		t.Fatalf("only %d requests were answered", len(acknowledged))
	}
	r := startIn(t, dir)
	eventually(t, func() error {
		seen := map[string]int{}
		for _, rec := range archived(t, r.g) {
			seen[rec.TraceID]++
		}
		for trace := range acknowledged {
			if seen[trace] != 1 {
				return fmt.Errorf("the request %s has %d records; %d were acknowledged, %d are booked", trace, seen[trace], len(acknowledged), len(seen))
			}
		}
		return nil
	})
}

// TestStopLetsStreamsFinish asks the process to stop while streams run.
//
//lane:standard
func TestStopLetsStreamsFinish(t *testing.T) {
	t.Parallel()
	mock := mockprovider.New(mockprovider.Options{})
	addr, err := mock.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	upstream := "http://" + strings.TrimPrefix(addr, "http://") + "/v1"
	dir := t.TempDir()
	p := spawn(t, dir)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	const streams = 20
	var wg sync.WaitGroup
	for n := range streams {
		wg.Go(func() {
			if _, err := p.sendChat(client, upstream, chatBody("gpt-4o-mini", fmt.Sprintf("Stream %d\nmock: chunks=60 pace=10ms", n), `,"stream":true`)); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, func() error {
		if open := mock.Bill().Open; open != streams {
			return fmt.Errorf("%d streams run", open)
		}
		return nil
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	client.CloseIdleConnections()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	r := startIn(t, dir)
	if got, want := booked(r.records(streams)), mock.Bill().Total; got.output != want.Output || got.input != want.Input || got.nanoDollars != want.NanoDollars {
		t.Errorf("our books %+v, the bill %+v", got, want)
	}
}

// TestASecondProcessOnTheFolderIsRefused keeps two processes from writing one
// folder.
func TestASecondProcessOnTheFolderIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	o := r.g.options
	if g, err := open(context.Background(), o); err == nil {
		_ = g.close()
		t.Error("a second gateway opened the same folder")
	}
}
