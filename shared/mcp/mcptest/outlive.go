package mcptest

import (
	"fmt"
	"sync"
	"testing"
)

// Outlive begins a session for each client, has the process killed in the middle of a call
// of each, and has all go on in the one that is launched after it. wait repeats until it
// gets no error; kill returns when the process is gone.
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
		if err := c.Say("hold " + c.Name); err != nil { // the client's own decision
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

// Recorded tells whether each call of Outlive that was answered has one record, and each
// that was cut off none or one. page gives the traces of calls on a page of the log, and
// whether there are more pages.
func Recorded(clients []*Client, page func(n int) (traces []string, more bool, err error)) error {
	seen := map[string]int{}
	for n, more := 0, true; more; n++ {
		traces, further, err := page(n)
		if err != nil {
			return err
		}
		for _, trace := range traces {
			seen[trace]++
		}
		more = further
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
