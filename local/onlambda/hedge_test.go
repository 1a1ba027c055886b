package onlambda_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// processes are those of a function.
func (in *restricted) processes(function string) (pids []int) {
	in.t.Helper()
	want, err := filepath.EvalSymlinks(filepath.Join(in.dir, function, "bootstrap"))
	if err != nil {
		in.t.Fatal(err)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == want {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// freeze stops a function's environments until the returned function is called, as Lambda does
// between invocations: the response of an invocation ends before its accounting does.
func (in *restricted) freeze(function string) (thaw func()) {
	in.t.Helper()
	in.until(func() error {
		if n := in.shim.Running(in.t.Context(), function); n > 0 {
			return fmt.Errorf("%d events of %s are running", n, function)
		}
		return nil
	})
	pids := in.processes(function)
	if len(pids) == 0 {
		in.t.Fatal("no environment of ", function)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			in.t.Fatal(err)
		}
	}
	thaw = func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	in.t.Cleanup(thaw) // also if the test ends early: the functions are shut down after it
	return thaw
}

// A hedged request is answered by the faster target. Both attempts are recorded and charged, and
// the slower call has ended, when the invocation ends: from then on the environment is frozen.
func TestAHedgeEndsWithItsResponse(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("needs /proc to find the environments")
	}
	in := restrictTo(t, []string{"chat", "logs", "usage", "audit", "apikeys"})
	made := in.send("POST", "/api-keys/workspace/service", adminKey, `{"name":"hedged","workspace_id":"default","scopes":["completions.write"],"usage_limits":{"type":"cost","credit_limit":100}}`)
	key, id := made["key"].(string), made["id"].(string)
	config := func(after int, first, second string) string {
		target := func(directives string) string {
			return fmt.Sprintf(`{"provider":"@mock","override_params":{"model":"gpt-4o","messages":[{"role":"user","content":"mock: %s"}]}}`, directives)
		}
		return fmt.Sprintf(`{"strategy":{"mode":"fallback","hedge":{"enabled":true,"after_ms":%d,"max_extra_cost":1}},"targets":[%s,%s]}`, after, target(first), target(second))
	}
	const warm = 3 // requests without a second attempt, after which the key has extra cost left
	for n := range warm {
		in.send("POST", "/chat/completions", key, hello, "X-Gateway-Config", config(600_000, "delay=1ms", "delay=1ms"), "X-Gateway-Trace-Id", fmt.Sprint("warm ", n))
	}
	for n, stream := range []bool{false, true} {
		trace := fmt.Sprint("hedged ", stream)
		res := in.do(t, "POST", "/chat/completions", key, strings.TrimSuffix(hello, "}")+fmt.Sprintf(`,"stream":%t}`, stream), "X-Gateway-Config", config(50, "delay=10m stop-on-cancel", "delay=1ms"), "X-Gateway-Trace-Id", trace)
		text := whole(t, res)
		thaw := in.freeze("chat")
		if option := res.Header.Get("X-Gateway-Last-Used-Option-Index"); res.StatusCode != 200 || option != "config.targets[1]" || stream && !strings.Contains(text, "data: [DONE]") {
			t.Errorf("%s: %d from %s: %.600s", trace, res.StatusCode, option, text)
		}
		in.until(func() error {
			if open := in.mock.Bill().Open; open != 0 {
				return fmt.Errorf("%d calls of the provider are open", open)
			}
			return nil
		})
		in.work(func() error { return in.hedgeIsBooked(id, trace, warm+n+1) })
		thaw()
	}
	for _, refused := range in.recorder.Denied() {
		t.Errorf("missing: %s", refused)
	}
	if t.Failed() {
		t.Log(in.log.text())
	}
}

// hedgeIsBooked returns an error as long as the record of a request with two attempts is not
// there, or the key was not charged the sum of its n records.
func (in *restricted) hedgeIsBooked(key, trace string, n int) error {
	list := in.send("GET", "/logs?workspace_id=default&page_size=100", adminKey, "")
	raw, err := json.Marshal(list["data"])
	if err != nil {
		return err
	}
	var rows []struct {
		ID    string  `json:"id"`
		Trace string  `json:"trace_id"`
		Key   string  `json:"api_key_id"`
		Cost  float64 `json:"cost_usd"`
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return err
	}
	sum, records, hedged := 0.0, 0, ""
	for _, row := range rows {
		if row.Key != key {
			continue
		}
		sum, records = sum+row.Cost, records+1
		if row.Trace == trace {
			hedged = row.ID
		}
	}
	if records != n || hedged == "" {
		return fmt.Errorf("%d records of %d, that of %s is %q", records, n, trace, hedged)
	}
	raw, err = json.Marshal(in.send("GET", "/logs/"+hedged+"?workspace_id=default", adminKey, "")["attempts"])
	if err != nil {
		return err
	}
	var attempts []struct {
		Option string  `json:"option"`
		Cost   float64 `json:"cost_usd"`
	}
	if err := json.Unmarshal(raw, &attempts); err != nil || len(attempts) != 2 || attempts[0].Cost <= 0 || attempts[1].Cost <= 0 {
		in.t.Fatalf("attempts %s: %v", raw, err)
	}
	limit, _ := in.send("GET", "/api-keys/"+key, adminKey, "")["usage_limits"].(map[string]any)
	if used, _ := limit["current_usage"].(float64); used < sum-1e-9 || used > sum+1e-9 || limit["reserved_usage"] != 0.0 {
		return fmt.Errorf("the key was charged %v, its records cost %v: %v", used, sum, limit)
	}
	return nil
}
