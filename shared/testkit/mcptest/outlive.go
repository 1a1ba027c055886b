package mcptest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

// Outlive begins a session for each client, kills the process during a call of each, and
// continues all sessions in the process that launch starts. wait repeats until there is no
// error; kill returns when the process has exited.
func Outlive(t *testing.T, h *Holder, clients []*Client, wait func(func() error), kill, launch func()) {
	t.Helper()
	each := func(do func(c *Client) error) *sync.WaitGroup {
		wg := new(sync.WaitGroup)
		for _, c := range clients {
			wg.Go(func() {
				if err := do(c); err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
			})
		}
		return wg
	}
	each(func(c *Client) error {
		if err := c.Begin(); err != nil {
			return err
		}
		return c.Say("before " + c.Name)
	}).Wait()
	if t.Failed() {
		t.FailNow()
	}
	cut := each(func(c *Client) error {
		if err := c.Say("hold " + c.Name); err == nil {
			return fmt.Errorf("a call was answered that nobody answered")
		}
		return nil
	})
	wait(func() error {
		if n := h.Held(); n != len(clients) {
			return fmt.Errorf("%d calls reached the server", n)
		}
		return nil
	})
	kill()
	cut.Wait()
	h.GoOn()
	launch()
	each(func(c *Client) error {
		if err := c.Say("hold " + c.Name); err != nil { // the client aborts
			return err
		}
		return c.Say("after " + c.Name)
	}).Wait()
	for _, c := range clients {
		for text, want := range map[string]int{"before ": 1, "hold ": 2, "after ": 1} {
			if n := h.Came(text + c.Name); n != want {
				t.Errorf("%s%s came %d times, not %d", text, c.Name, n, want)
			}
		}
	}
}

// Recorded checks that each answered call of Outlive has one record and each interrupted call
// at most one. get returns the administration API's response for a path.
func Recorded(clients []*Client, get func(path string) ([]byte, error)) error {
	seen := map[string]int{}
	for n, more := 0, true; more; n++ {
		page, err := get(fmt.Sprintf("/logs?workspace_id=default&page_size=100&current_page=%d", n))
		if err != nil {
			return err
		}
		if more, err = countCalls(page, seen); err != nil {
			return err
		}
	}
	total := 0
	for _, c := range clients {
		for call, least := range map[int]int{1: 1, 2: 0, 3: 1, 4: 1} {
			n := seen[fmt.Sprintf("%s-%d", c.Name, call)]
			if total += n; n < least || n > 1 {
				return fmt.Errorf("%s: call %d has %d records", c.Name, call, n)
			}
		}
	}
	if len(seen) != total {
		return fmt.Errorf("%d records of %d calls", total, len(seen))
	}
	return nil
}

// countCalls counts the calls of the tool on a page of the log, by trace, and reports whether
// the page has records.
func countCalls(page []byte, seen map[string]int) (more bool, _ error) {
	var logs struct {
		Data []struct {
			Trace  string `json:"trace_id"`
			Method string `json:"mcp_method"`
			Name   string `json:"mcp_name"`
		} `json:"data"`
	}
	if err := json.Unmarshal(page, &logs); err != nil {
		return false, fmt.Errorf("%.300s: %w", page, err)
	}
	for _, l := range logs.Data {
		if l.Method == "tools/call" && l.Name == "say" {
			seen[l.Trace]++
		}
	}
	return len(logs.Data) > 0, nil
}
